"""The pages, one by one, as a session sees them."""

import json
import re
from dataclasses import replace

import pytest

from pipeline_lab.options.presets import PRESET_GROUPS, PRESETS, find_preset
from pipeline_lab.pipeline.source import render_source
from pipeline_lab.runs import own_job_runs
from pipeline_lab.runs.record import RunRecord, RunState
from pipeline_lab.runs.run_folder import update_record
from pipeline_lab.ui.run import live
from pipeline_lab.ui.serving import server
from pipeline_lab.ui.shared import cache, one_look
from tests.support.run_folders import make_run, set_state
from tests.support.worlds import make_search
from tests.ui.conftest import charts, said, texts


@pytest.mark.usefixtures("samples", "diagnosis")
def test_home_offers_the_presets_and_the_samples(open_page):
    app = open_page("home")
    assert not app.exception
    assert "Launch" not in [one.label for one in app.button], "the groups are folded"
    shown = 0
    for group in PRESET_GROUPS:
        app.button(key=f"group-{group.title}").click().run()
        shown += [one.label for one in app.button].count("Launch")
    assert shown == len(PRESETS)
    assert "sample" in texts(app)
    app.button(key="open-baseline").click().run()
    assert app.title[0].value == "baseline"


def test_a_run_at_home_is_told_by_what_limits_it_and_its_step(open_page, run_store, monkeypatch):
    make_run(run_store)
    monkeypatch.setattr(cache, "summary", lambda _: cache.RunSummary(257.2, 36.0, "input bound"))
    assert "Input bound, median step 257 ms" in texts(open_page("home"))


def test_home_shows_a_search_with_its_gain_and_not_what_it_measured(open_page, run_store):
    search = make_search(run_store)
    assert len(run_store.runs()) > 2
    app = open_page("home")
    assert not app.exception
    opened = [one.key for one in app.button if one.key and one.key.startswith("open-")]
    assert opened == [f"open-{search.id}"]
    assert re.search(r"Faster: [\d.]+ % less time per step", texts(app).replace("\\", ""))


def test_home_of_an_empty_store_still_says_what_this_is(open_page):
    app = open_page("home")
    assert not app.exception
    assert "recorded run" not in texts(app)
    assert "what the device waits for" in texts(app)


@pytest.mark.parametrize("page", ["runs", "run"])
def test_an_empty_store_says_what_to_do(open_page, page):
    app = open_page(page)
    assert not app.exception
    assert "launch one on the page New run" in app.info[0].value


def test_launching_a_preset_leads_to_its_run(open_page, run_store):
    app = open_page("home")
    app.text_input(key="find-preset").set_value("synthetic").run()
    app.button(key="launch-synthetic").click().run()
    run = run_store.runs()[0]
    assert (run.name, run.status.state) == ("synthetic", RunState.QUEUED)
    assert app.title[0].value == "synthetic"


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_the_preview_is_the_file_that_will_run(open_page, preset):
    app = open_page("new_run", **{"from": f"preset:{preset.name}"})
    assert not app.exception
    assert app.code[0].value == render_source(preset.options).strip()


def test_the_preview_follows_the_form(open_page):
    app = open_page("new_run")
    assert not [one for one in app.number_input if one.key == "draft0.stage1.buffer_size"], "the stage is closed"
    app.session_state["draft0.stage1.open"] = True
    app.run()
    app.number_input(key="draft0.stage1.buffer_size").set_value(77).run()
    assert "buffer_size=77" in app.code[0].value or "shuffle(77" in app.code[0].value


def test_a_stage_keeps_what_was_typed_when_it_is_closed(open_page):
    app = open_page("new_run")
    app.session_state["draft0.stage1.open"] = True
    app.run()
    app.number_input(key="draft0.stage1.buffer_size").set_value(77).run()
    app.session_state["draft0.stage1.open"] = False
    app.run()
    app.text_input(key="draft0.name").set_value("later").run()
    assert "77" in app.code[0].value
    app.session_state["draft0.stage1.open"] = True
    app.run()
    assert app.number_input(key="draft0.stage1.buffer_size").value == 77


def test_every_stage_that_is_offered_can_be_added_and_edited(open_page):
    app = open_page("new_run", **{"from": "preset:synthetic"})
    form = next(one.key for one in app.button if one.key and one.key.endswith(".add")).removesuffix(".add")
    offered = [kind for kind in app.selectbox(key=f"{form}.kind_to_add").options if kind not in ("unbatch", "save")]
    present = 5
    for kind in offered:
        app.selectbox(key=f"{form}.kind_to_add").set_value(kind).run()
        app.button(key=f"{form}.add").click().run()
    for number in range(present, present + len(offered)):
        app.session_state[f"{form}.stage{number}.open"] = True
    app.run()
    assert not app.exception
    app.selectbox(key=f"{form}.pipeline.autotune_algorithm").set_value("hill_climb").run()
    app.number_input(key=f"{form}.stage{present + offered.index('shard')}.index").set_value(1).run()
    assert not app.error, app.error[0].value
    source = app.code[0].value
    for line in (
        "take(1000)",
        "skip(100)",
        "shard(2, 1)",
        "rebatch(128",
        "snapshot(",
        "HILL_CLIMB",
        "prefetch_to_device",
    ):
        assert line in source


def test_a_launched_form_runs_what_it_showed(open_page, run_store):
    app = open_page("new_run")
    app.text_input(key="draft0.name").set_value("mine").run()
    shown = app.code[0].value
    app.button(key="launch").click().run()
    run = run_store.runs()[0]
    assert run.name == "mine"
    assert run_store.folder(run.id).source.read_text().strip() == shown


def test_options_that_contradict_each_other_cannot_be_launched(open_page):
    app = open_page("new_run")
    app.button(key="draft0.stage5.remove").click().run()
    assert not app.exception
    assert "a batch stage is missing" in app.error[0].value
    assert app.button(key="launch").disabled
    assert ".batch(" in app.code[0].value, "the source of the last form that was ready stays"
    assert "for the last valid form" in texts(app)


def test_an_open_stage_stays_open_when_it_moves(open_page):
    app = open_page("new_run", **{"from": "preset:baseline"})
    generation = next(one.key for one in app.button if one.key and one.key.endswith(".add")).removesuffix(".add")
    app.session_state[f"{generation}.stage2.open"] = True
    app.run()
    inside = [one.key for one in app.number_input if f"{generation}.stage2." in str(one.key)]
    assert inside
    app.button(key=f"{generation}.stage2.up").click().run()
    assert [one.key for one in app.number_input if f"{generation}.stage2." in str(one.key)] == inside


def test_the_tiles_say_which_steps_they_are_measured_over(open_page, run_store, diagnosis):  # noqa: ARG001
    app = open_page("run", run=make_run(run_store).id)
    assert "Throughput: all 195 measured steps" in texts(app).replace("\\", "")
    assert 4 <= len([one for one in app.metric if one.proto.show_border]) <= 5, "one number per notion"


def test_a_stage_moves_with_what_was_typed_into_it(open_page):
    app = open_page("new_run", **{"from": "preset:synthetic"})
    generation = next(one.key for one in app.button if one.key and one.key.endswith(".add")).removesuffix(".add")
    app.session_state[f"{generation}.stage3.open"] = True
    app.run()
    app.number_input(key=f"{generation}.stage3.size").set_value(32).run()
    app.button(key=f"{generation}.stage3.up").click().run()
    assert not app.exception
    assert "batch(32" in app.code[0].value.replace("batch_size=", "")


def test_a_workload_is_changed_with_its_stages(open_page):
    app = open_page("new_run")
    app.segmented_control(key="draft0.kind").set_value("synthetic").run()
    assert not app.exception
    assert not app.error
    assert "payload" in app.code[0].value


def test_another_preset_replaces_the_form(open_page):
    app = open_page("new_run")
    app.selectbox(key="preset0").set_value("unequal-files").run()
    assert app.code[0].value == render_source(find_preset("unequal-files").options).strip()
    assert app.query_params["from"] in ("preset:unequal-files", ["preset:unequal-files"])


@pytest.mark.usefixtures("diagnosis")
def test_a_run_can_be_the_start_of_another(open_page, run_store):
    folder = make_run(run_store, "unequal-files")
    app = open_page("run", run=folder.id)
    app.button(key=f"manage-{folder.id}-copy").click().run()
    assert app.title[0].value == "Which pipeline do you want to try?"
    assert app.code[0].value == folder.source.read_text().strip()


@pytest.mark.parametrize("start", [{"from": "preset:nothing"}, {"preset": "nothing"}])
def test_a_start_that_does_not_exist_is_one_sentence(open_page, start):
    app = open_page("new_run", **start)
    assert not app.exception
    assert "is not a preset" in app.error[0].value


def test_a_link_may_name_its_preset_in_short(open_page):
    app = open_page("new_run", preset="optimised")
    assert app.code[0].value == render_source(find_preset("optimised").options).strip()
    app.selectbox(key="preset0").set_value("unequal-files").run()
    assert app.code[0].value == render_source(find_preset("unequal-files").options).strip(), "the link says so no more"


def test_runs_are_found_by_words(open_page, run_store):
    make_run(run_store, "baseline")
    make_run(run_store, "optimised")
    app = open_page("runs")
    assert len(app.dataframe[0].value) == 2
    app.text_input(key="search").set_value("optimised").run()
    (link,) = app.dataframe[0].value["Name"]
    assert link.startswith("run?run=")
    assert link.endswith("#optimised")
    app.text_input(key="search").set_value("nothing like it").run()
    assert "No run matches" in app.info[0].value


def test_the_recording_of_somebodys_own_job_is_stopped_and_not_the_job(open_page, run_store):
    folder = own_job_runs.begin(run_store, "train.py", tags=())
    app = open_page("run", run=folder.id)
    assert not app.exception
    assert app.button(key="cancel").label == "Stop recording"
    assert "The job goes on" in app.button(key="cancel").help


@pytest.mark.usefixtures("diagnosis")
def test_a_run_says_its_verdict_before_its_numbers_and_charts(open_page, run_store):
    folder = make_run(run_store)
    app = open_page("run", run=folder.id)
    assert not app.exception
    assert said(app.header[0].value).startswith("The device waits for input 60 % of the time")
    labels = [metric.label for metric in app.metric]
    assert labels[labels.index("Time per step") + 1] == "Lost to input"
    assert app.metric[labels.index("Throughput")].value.count("/s") == 1
    assert len(charts(app)) == 4  # the step to scale, and the tab's
    assert "predicted: step up to 30 % shorter" in texts(app)


@pytest.mark.usefixtures("diagnosis")
def test_every_section_has_its_charts(open_page, run_store):
    folder = make_run(run_store)
    drawn = {}
    for section in ("Idle gaps", "File sampling", "Memory", "Steps and loss"):
        app = open_page("run", run=folder.id, section=section)
        assert not app.exception
        drawn[section] = len(charts(app))
    assert drawn == {
        "Idle gaps": 5,
        "File sampling": 7,
        "Memory": 3,
        "Steps and loss": 5,
    }  # each with the step to scale


@pytest.mark.usefixtures("diagnosis")
def test_options_source_and_files_are_shown(open_page, run_store):
    folder = make_run(run_store)
    app = open_page("run", run=folder.id, section="Options and source")
    codes = [one.value for one in app.code]
    assert json.loads(codes[0])["pipeline"]["stages"][0]["stage"] == "read"
    assert codes[1] == folder.source.read_text().strip()
    assert f"/api/lab/runs/{folder.id}/files/run.json" in texts(app)


@pytest.mark.usefixtures("diagnosis")
def test_the_machine_is_told_in_words(open_page, run_store):
    folder = make_run(run_store)
    gpus = [{"name": "NVIDIA H200", "memory_bytes": 150_000_000_000}, {"name": "NVIDIA T4", "memory_bytes": None}]
    environment = {"memory_bytes": 24_000_000_000, "gpus": gpus}
    update_record(folder, lambda record: replace(record, environment=environment))
    shown = texts(open_page("run", run=folder.id, section="Options and source"))
    assert "| Memory | 24 GB |" in shown
    assert "| GPUs | NVIDIA H200 · 150 GB, NVIDIA T4 |" in shown


@pytest.mark.usefixtures("diagnosis")
def test_a_failed_run_says_why_in_one_sentence(open_page, run_store):
    folder = make_run(run_store, state=RunState.FAILED, reason="The disk *is* full; free some space.")
    app = open_page("run", run=folder.id)
    assert app.error[0].value == r"The disk \*is\* full; free some space\."
    assert "Traceback" in app.expander[0].code[0].value


@pytest.mark.parametrize("run", ["nothing", "../../etc", "broken"])
def test_a_run_that_cannot_be_read_is_one_sentence(open_page, run_store, run):
    make_run(run_store)
    broken = run_store.root / "broken"
    broken.mkdir()
    (broken / "run.json").write_text("{")
    app = open_page("run", run=run)
    assert not app.exception
    assert len(app.error) == 1


def test_a_working_run_shows_its_progress_and_can_be_stopped(open_page, run_store):
    folder = make_run(run_store, state=RunState.RUNNING, steps=60)
    app = open_page("run", run=folder.id)
    assert not app.exception
    assert "step 55 of 200" in str(app.get("progress")[0].proto.text).replace("\\", "")
    assert len(charts(app)) == 2
    app.button(key="cancel").click().run()
    assert folder.cancel_flag.exists()
    assert app.button(key="cancel-asked").disabled


def test_visitors_of_a_working_run_share_its_charts(open_page, run_store, monkeypatch):
    monkeypatch.setattr(one_look, "KEPT_S", float("inf"))
    drawn = []
    monkeypatch.setattr(live, "draw_chart", lambda *one, draw=live.draw_chart: drawn.append(one) or draw(*one))
    folder = make_run(run_store, state=RunState.RUNNING, steps=60)
    shown = [charts(open_page("run", run=folder.id)) for _ in range(3)]
    assert len(shown[0]) == len(drawn) == 2
    assert shown[1:] == shown[:-1]


def test_pages_of_a_working_run_refresh_slower_the_more_there_are(open_page, run_store, monkeypatch):
    folder, intervals = make_run(run_store, state=RunState.RUNNING, steps=60), []
    fragment = live.st.fragment
    monkeypatch.setattr(
        live.st,
        "fragment",
        lambda show, *, run_every: intervals.append(run_every) or fragment(show, run_every=run_every),
    )
    for pages in (1, 50):
        monkeypatch.setattr(one_look, "open_pages", lambda pages=pages: pages)
        assert not open_page("run", run=folder.id).exception
    assert intervals == [1.0, 3.0, 5.0, 15.0]


def test_a_queued_run_says_that_it_waits(open_page, run_store):
    folder = make_run(run_store)
    set_state(folder, RunState.QUEUED)
    app = open_page("run", run=folder.id)
    assert "Waiting for the device" in app.get("progress")[0].proto.text


@pytest.mark.usefixtures("diagnosis")
def test_names_are_shown_as_typed(open_page, run_store):
    folder = make_run(run_store)
    run_store.rename(folder.id, "<b>bold</b> $x$ :red[no] [link](javascript:alert(1))")
    run_store.tag(folder.id, ("*t*",))
    app = open_page("run", run=folder.id)
    assert app.title[0].value == r"\<b\>bold\</b\> \$x\$ \:red\[no\] \[link\]\(javascript\:alert\(1\)\)"
    assert r"\*t\*" in texts(app)


@pytest.mark.usefixtures("samples", "diagnosis")
def test_samples_can_be_looked_at_but_not_changed(open_page):
    app = open_page("run", run="baseline")
    assert not app.exception
    assert [one.label for one in app.button] == ["Copy into a new run", "Race this against …", "Tune"]


@pytest.mark.usefixtures("diagnosis")
def test_a_deleted_run_is_gone_and_the_list_is_shown(open_page, run_store):
    folder = make_run(run_store)
    app = open_page("run", run=folder.id)
    app.button(key=f"manage-{folder.id}-confirm").click().run()
    assert not folder.path.exists()
    assert app.title[0].value == "Which runs are there?"


@pytest.mark.usefixtures("diagnosis")
def test_a_run_is_renamed_and_tagged(open_page, run_store):
    folder = make_run(run_store)
    app = open_page("run", run=folder.id)
    key = f"manage-{folder.id}"
    app.text_input(key=f"{key}-name").set_value("better name")
    app.text_input(key=f"{key}-tags").set_value("one, two,, one")
    next(one for one in app.button if one.label == "Save").click().run()
    record = run_store.read(folder.id)
    assert (record.name, record.tags) == ("better name", ("one", "two"))
    assert app.title[0].value == "better name"


def test_an_empty_number_says_what_it_means(open_page):
    app = open_page("new_run")
    meanings = {one.label: one.placeholder for one in app.number_input}
    assert meanings["Checkpoint every … steps"] == "never"
    assert meanings["Private thread pool"] == "automatic"


def test_the_store_is_read_before_anybody_opens_its_list(open_page, run_store, monkeypatch):
    for _ in range(3):
        make_run(run_store)
    server._prepare()
    read = []
    monkeypatch.setattr(RunRecord, "from_json", lambda *one: read.append(one))
    monkeypatch.setattr(cache, "read_table", lambda *one: read.append(one))
    app = open_page("runs")
    assert not app.exception
    assert "3 runs in" in texts(app)
    assert not read
