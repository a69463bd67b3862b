from pathlib import Path

from pipeline_lab.analysis.diagnosis.diagnose import diagnose

(found,) = [one for one in diagnose(Path("profiles/samples/sample-baseline")).findings if one.kind == "toy-cores"]
assert found.to_json()["sentence"] == "The job had few cores; give it more."
