"""The timeline on a run's page: its routes, its explanations, and the ways to it and back."""

import json
import re
import shutil
from dataclasses import replace

import pytest

from pipeline_lab.analysis.diagnosis.saved import SavedDiagnosis, fingerprint_inputs
from pipeline_lab.analysis.tf_data.iterator_places import place_of
from pipeline_lab.analysis.tf_data.tf_data import CriticalPath, PathShare
from pipeline_lab.analysis.timeline.build import build_index
from pipeline_lab.analysis.timeline.look import pick
from pipeline_lab.errors import Unavailable
from pipeline_lab.pipeline.recipe import SourcePlace
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.run_documents import WrittenCall, WrittenPipeline, WrittenStage
from pipeline_lab.ui.shared import analyses
from pipeline_lab.ui.timeline.explain import explain_event
from pipeline_lab.ui.timeline.timeline_routes import ROUTES, url_of
from tests.support import results
from tests.support.asgi import ask
from tests.support.run_folders import make_run, set_state
from tests.support.timelines import MS, make_timeline, write_trace


@pytest.fixture(scope="module")
def timeline(tmp_path_factory):
    return make_timeline(tmp_path_factory.mktemp("timeline"))


@pytest.fixture
def opened(tmp_path, run_store, monkeypatch, timeline):
    """Return a run with an index, and where its timeline answers."""
    monkeypatch.setenv("PIPELINE_LAB_CACHE", str(tmp_path / "cache"))
    folder = make_run(run_store)
    window = folder.window("window-0001")
    window.mkdir(parents=True)
    write_trace(window / "host.xplane.pb")
    saved = SavedDiagnosis(folder.path)
    inputs = fingerprint_inputs(folder.path)
    saved.save(timeline[1], inputs)
    saved.save_timeline(lambda made: build_index(folder.path, timeline[1], made), inputs)
    return folder, url_of(folder.id, saved.timeline.name)


def get(url: str, status: int = 200):
    answer = ask(ROUTES, url)
    assert answer.status == status, answer.body
    return json.loads(answer.body)


def test_a_view_comes_uncompressed_and_for_its_rows_only(opened):
    _, url = opened
    answer = ask(ROUTES, f"{url}/view?start=0&end={200 * MS}&px=800&rows=0.0,0.1&marked=")
    assert answer.headers["content-encoding"] == "identity"
    view = json.loads(answer.body)
    assert [(row["lane"], row["layer"]) for row in view["rows"]] == [(0, 0), (0, 1)]
    assert len(view["rows"][1]["events"]) == 4 * 4
    assert "train" in view["names"].values()


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("start=5&end=5&px=10&rows=", "The end of a view must be after its start."),
        ("start=a&end=5&px=10&rows=", "start must be a whole number"),
        ("start=0&end=5&px=100000&rows=", "px must lie between"),
        ("start=0&end=5&px=10&rows=../etc", "is not a row"),
        ("start=0&end=5&px=10&rows=99999999.1", "is not a row"),
        ("start=0&end=5&px=10&rows=" + ",".join(["0.0"] * 999), "At most"),
    ],
)
def test_a_bad_question_gets_a_sentence(opened, query, sentence):
    assert sentence in get(f"{opened[1]}/view?{query}", 400)["error"]


def test_an_unknown_run_or_index_is_not_found(opened):
    folder, url = opened
    assert "reload" in get(url_of(folder.id, "timeline-" + "0" * 32) + "/search?words=a", 404)["error"]
    assert "reload" in get(url_of(folder.id, "..") + "/search?words=a", 404)["error"]
    assert get(url.replace(folder.id, "20260101-000000-nobody") + "/search?words=a", 404)["error"]


def test_events_are_found_by_place_name_and_link(opened):
    _, url = opened
    assert get(f"{url}/event?pick=wait@{105 * MS}") is None
    found = get(f"{url}/search?words=jpeg")
    assert (found["events"], len(found["names"])) == (2, 1)
    assert found["shown"][0]["text"] == "2 ×, 40 ms"
    event = get(f"{url}/next?marked={found['names'][0]}&time=0")
    assert event["title"] == "map/decode:DecodeJpeg"
    again = get(f"{url}/event?pick={event['pick']}")
    assert again == event
    lane, layer = event["lane"], event["layer"]
    assert get(f"{url}/event?place={lane}.{layer}&time={event['start'] + 1}&tolerance=0") == event
    assert get(f"{url}/next?place={lane}.{layer}&time={event['start']}&back=1") is None


def test_a_range_says_what_it_went_into(opened):
    found = get(f"{opened[1]}/range?start={20 * MS}&end={120 * MS}")
    assert found["title"] == "Range of 100 ms"
    assert dict(found["facts"])["Steps"] == "0 to 1 (2)"
    assert [(row["name"], row["time"], row["share"]) for row in found["sums"]["rows"]] == [
        ("idle: input wait", "60 ms", "60 %"),
        ("busy", "40 ms", "40 %"),
    ]
    assert sum(row["part"] for row in found["sums"]["rows"]) == pytest.approx(1)
    assert found["meanwhile"]["rows"][0]["name"] == "model/add:AddV2"
    assert "after its start" in get(f"{opened[1]}/range?start=5&end=5", 400)["error"]


def explained(timeline, text: str):
    index, diagnosis = timeline
    return explain_event(index, diagnosis, pick(index, text))


def test_a_gap_says_its_cause_its_parts_and_what_the_host_did(timeline):
    gap = explained(timeline, f"gap@{90 * MS}")
    facts = dict(map(tuple, gap["facts"]))
    assert gap["title"] == "Idle gap of 60 ms: input wait"
    assert facts["Divides into"].startswith("input wait 66.7 %")
    assert [(row["name"], row["time"], row["share"]) for row in gap["meanwhile"]["rows"]] == [
        ("map/decode:DecodeJpeg", "20 ms", "33.3 %"),
        ("train", "20 ms", "33.3 %"),
        ("Iterator::Map", "15 ms", "25 %"),
    ]
    assert gap["section"] == "Idle gaps"


def test_a_wait_says_what_the_pipeline_did_meanwhile(timeline):
    wait = explained(timeline, f"wait@{100 * MS}")
    assert wait["title"] == "Input wait of 40 ms"
    assert ["Step", "1"] in [list(fact) for fact in wait["facts"]]
    names = [row["name"] for row in wait["meanwhile"]["rows"]]
    assert names[0] == "map/decode:DecodeJpeg"
    assert not any("IteratorGetNext" in name for name in names), "waiting does not explain a wait"


def test_a_wait_and_its_gap_lead_to_what_caused_them(timeline):
    index, diagnosis = timeline
    pipeline = results.tf_data()
    stages = tuple(replace(stage, path="Root::Map") for stage in pipeline.stages)
    path = CriticalPath(40 * MS, 40 * MS, (PathShare(0, "DecodeJpeg", 40 * MS, 40 * MS),))
    known = replace(diagnosis, tf_data=replace(pipeline, stages=stages, critical_path=path))
    for place in (f"wait@{100 * MS}", f"gap@{90 * MS}"):
        found = explain_event(index, known, pick(index, place))
        said = dict(map(tuple, found["facts"]))["Waited for"]
        assert re.fullmatch(r"Map, DecodeJpeg: 20 ms \(.* %\), on tf_data_private_threadpool \(mostly Map\)", said)
        (cause,) = found["causes"]
        assert explain_event(index, known, pick(index, cause["pick"]))["title"] == "map/decode:DecodeJpeg"
    assert explain_event(index, known, pick(index, "step@0"))["causes"] == []
    assert explained(timeline, f"wait@{100 * MS}")["causes"] == [], "its critical path does not tell"


def test_a_step_and_an_event_say_how_long_where_and_what(timeline):
    assert explained(timeline, "step@0")["title"] == "Step 0, 100 ms"
    index, diagnosis = timeline
    event = explain_event(index, diagnosis, pick(index, "1.1@6000000"))
    facts = dict(map(tuple, event["facts"]))
    assert event["title"] == "map/decode:DecodeJpeg"
    assert facts["Lasts"] == "20 ms"
    assert facts["Step"] == "0"
    assert facts["Total"] == "2 events, 40 ms"
    assert event["section"] is None


def test_a_stage_is_named_by_what_was_written_for_it(timeline):
    index, diagnosis = timeline
    stage = next(number for number, name in enumerate(index.names) if name.startswith("Iterator::"))
    path = place_of(index.names[stage])
    place = SourcePlace("/home/train.py", 41, 41, 0, 9, 41)
    ran = results.tf_data().stages[0]
    written = WrittenStage(ran.node, "map", None, {}, (), WrittenCall(".map(load)", place))
    known = replace(
        diagnosis,
        tf_data=replace(
            results.tf_data(),
            stages=(replace(ran, path=path, name=path.rpartition("::")[2]),),
            critical_path=Unavailable("none"),
        ),
        live_model=Unavailable("none"),
        written=WrittenPipeline((written,), 2),
    )
    gap = explain_event(index, known, pick(index, f"gap@{90 * MS}"))
    assert "Iterator::Map · train.py:41 .map(load)" in [row["name"] for row in gap["meanwhile"]["rows"]]


def test_the_page_shows_the_canvas_when_the_index_is_there(opened, open_page):
    folder, url = opened
    app = open_page("run", run=folder.id, section="Timeline")
    assert not app.exception
    data = json.dumps([str(element.proto) for element in app.get("bidi_component")])
    assert url.rpartition("/")[2] in data


def test_a_working_run_shows_the_timeline_of_its_windows_so_far(opened, open_page, monkeypatch):
    folder, url = opened
    monkeypatch.setattr(analyses, "start_live_analysis", lambda _: None)
    set_state(folder, RunState.RUNNING)
    app = open_page("run", run=folder.id)
    assert not app.exception
    data = json.dumps([str(element.proto) for element in app.get("bidi_component")])
    assert url.rpartition("/")[2] in data
    assert any("first profile window;" in caption.value for caption in app.caption)


def test_the_page_says_so_when_the_index_cannot_be_made(opened, open_page, monkeypatch):
    folder, _ = opened
    shutil.rmtree(SavedDiagnosis(folder.path).timeline)
    SavedDiagnosis(folder.path).save_error("The disk is full; make room.")

    class Failed:
        has_failed = True

    monkeypatch.setattr("pipeline_lab.ui.timeline.component._attempts.start", lambda *_: Failed())
    app = open_page("run", run=folder.id, section="Timeline")
    assert "The disk is full" in app.info[0].value.replace("\\", "")
