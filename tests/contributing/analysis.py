import tempfile
from pathlib import Path

from pipeline_lab.analysis.diagnosis.diagnose import diagnose
from pipeline_lab.analysis.diagnosis.storage import read_result, write_result
from pipeline_lab.analysis.results import Diagnosis

diagnosis = diagnose(Path("profiles/samples/sample-baseline"))
assert diagnosis.toy_looks.count > 0
assert diagnosis.to_json()["toy_looks"] == {"count": diagnosis.toy_looks.count}
with tempfile.TemporaryDirectory() as folder:
    kept = read_result(write_result(diagnosis, Path(folder)), Path(folder), Diagnosis)
    assert kept.toy_looks == diagnosis.toy_looks

trace = next(Path("profiles/samples/sample-baseline").rglob("*.xplane.pb*"))
assert diagnose(trace).to_json()["toy_looks"]["unavailable"].startswith("How often the machine")
