import json

from pipeline_lab.analysis.diagnosis.saved import DOCUMENT
from pipeline_lab.ui.shared import cache


def test_lists_of_runs_call_a_verdict_as_its_page_does(tmp_path):
    found = tmp_path / DOCUMENT
    for number, (kept, shown) in enumerate({"idle-other": "idle device", "input-bound": "input bound"}.items()):
        found.write_text(json.dumps({"verdict": kept}), encoding="utf-8")
        assert cache._verdict(found, (number,)) == shown
