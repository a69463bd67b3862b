# docker build -t pipeline-lab .            CPU
# docker build -t pipeline-lab:gpu --build-arg REQUIREMENTS=requirements-gpu.txt .
# docker run --init --rm -p 127.0.0.1:8501:8501 -v pipeline-lab-runs:/runs pipeline-lab
FROM python:3.12-slim

ARG REQUIREMENTS=requirements.txt
WORKDIR /app
COPY requirements*.txt ./
RUN pip install --no-cache-dir -r ${REQUIREMENTS}
COPY pyproject.toml README.md LICENSE app.py ./
COPY .streamlit .streamlit
COPY profiles/samples profiles/samples
COPY pipeline_lab pipeline_lab
RUN pip install --no-cache-dir --no-deps --editable . \
 && useradd --create-home lab && mkdir /runs && chown lab /runs
USER lab
ENV PIPELINE_LAB_STORE=/runs
VOLUME /runs
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s \
  CMD python -c "import urllib.request as r; r.urlopen('http://127.0.0.1:8501/_stcore/health', timeout=4)"
CMD ["streamlit", "run", "app.py", "--server.address", "0.0.0.0", "--server.headless", "true"]
