# docker build -t pipeline-lab .                       for the processor
# docker build -t pipeline-lab:gpu --target gpu .      for NVIDIA GPUs
# docker run --init --rm -p 127.0.0.1:8501:8501 -e PIPELINE_LAB_ALLOW_CHANGES=1 -v pipeline-lab-runs:/runs pipeline-lab
FROM python:3.12-slim AS wheel
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY profiles/samples profiles/samples
COPY pipeline_lab pipeline_lab
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.12-slim AS base
RUN useradd --create-home lab && mkdir /runs && chown lab /runs
WORKDIR /app
COPY app.py ./
COPY pipeline_lab/ui/assets/config.toml .streamlit/config.toml
ENV PIPELINE_LAB_STORE=/runs
VOLUME /runs
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s \
  CMD python -c "import urllib.request as r; r.urlopen('http://127.0.0.1:8501/_stcore/health', timeout=4)"
# All addresses of the container; `-p 127.0.0.1:…` above keeps the port on this machine. With the name under which browsers find
# it Streamlit does not ask a site on the Internet for its address.
CMD ["streamlit", "run", "app.py", "--server.address", "0.0.0.0", "--server.headless", "true", "--browser.serverAddress", "localhost"]

FROM base AS gpu
COPY requirements-gpu.txt ./
RUN pip install --no-cache-dir -r requirements-gpu.txt
COPY --from=wheel /wheels /wheels
RUN pip install --no-cache-dir --no-deps /wheels/*.whl
USER lab

FROM base AS cpu
COPY requirements.txt ./
RUN pip install --no-cache-dir -r requirements.txt
COPY --from=wheel /wheels /wheels
RUN pip install --no-cache-dir --no-deps /wheels/*.whl
USER lab
