import json
import re

from pipeline_lab.analysis.diagnosis.saved import DOCUMENT
from pipeline_lab.runs.store import RunStore
from pipeline_lab.ui.shared import cache
from tests.support.saved_runs import make_watched_race
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
    assert [one.gain.endswith(" % less time per step") for one in found] == [True, False], (
        "what did not race has gained nothing"
    )


def test_only_what_is_faster_has_a_gain(tmp_path):
    store = RunStore(tmp_path)
    faster, slower = make_watched_race(store), make_watched_race(store)
    told = slower.events.read_text(encoding="utf-8")
    slower.events.write_text(told.replace('"faster"', '"slower"'), encoding="utf-8")
    found = cache.summaries([faster, slower])
    assert [one.verdict for one in found] == ["faster", "slower"]
    assert re.fullmatch(r"(19|20)[.\d]* % less time per step", found[0].gain)
    assert not found[1].gain
