import json

from pipeline_lab.analysis.diagnosis.saved import DOCUMENT
from pipeline_lab.runs.store import RunStore
from pipeline_lab.ui.shared import cache
from tests.support.worlds import make_search


def test_lists_of_runs_call_a_verdict_as_its_page_does(tmp_path):
    found = tmp_path / DOCUMENT
    for number, (kept, shown) in enumerate({"idle-other": "idle device", "input-bound": "input bound"}.items()):
        found.write_text(json.dumps({"verdict": kept}), encoding="utf-8")
        assert cache._verdict(found, (number,)) == (shown, "")


def test_lists_of_runs_say_what_a_search_found(tmp_path):
    store = RunStore(tmp_path)
    whole, stopped = make_search(store), make_search(store, stops_after=1)
    found = cache.summaries([whole, stopped])
    assert [one.verdict for one in found] == ["faster", "model's choice, not raced"]
    assert [one.gain.endswith(" % less") for one in found] == [True, False], "what did not race has gained nothing"
