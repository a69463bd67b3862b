"""Opening a log: from an upload or a path to its run's page, kept or thrown away."""

import os
import shutil
from pathlib import Path

import pytest

from pipeline_lab.runs import opened_logs, own_job_runs
from pipeline_lab.runs.launch import runtime
from pipeline_lab.ui.serving import access, uploads
from pipeline_lab.ui.shared import analyses
from pipeline_lab.ui.upload import upload_zone
from tests.support import results
from tests.support.xspace import XSpace
from tests.ui.conftest import said, texts

TRACE = Path(__file__).parents[2] / "data" / "small_pipeline.xplane.pb"


@pytest.fixture
def log(tmp_path):
    return Path(shutil.copy(TRACE, tmp_path))


@pytest.fixture
def open_log(open_page):
    """Return a function that opens a path on the page."""

    def open_(path):
        app = open_page("upload")
        app.text_input(key="path").set_value(str(path))
        app.button(key="open-path").click().run()
        return app

    return open_


@pytest.mark.usefixtures("diagnosis")
@pytest.mark.slow
def test_a_path_becomes_an_unkept_run_and_its_page_opens(open_log, run_store, log):
    app = open_log(log)
    assert not app.exception
    run = run_store.runs()[0]
    assert (run.name, run.tags) == (TRACE.name, ("log",))
    assert app.title[0].value == r"small\_pipeline\.xplane\.pb"
    assert app.query_params["run"] in (run.id, [run.id])
    assert "not kept" in texts(app)


@pytest.mark.usefixtures("diagnosis")
def test_an_upload_becomes_a_run_and_its_page_opens(open_page, run_store, log, monkeypatch):
    arrival = opened_logs.new_arrival(run_store)
    opened_logs.bring(log, arrival)
    monkeypatch.setitem(uploads._uploads, "abc", uploads.Upload(arrival, ["my log.xplane.pb"]))
    monkeypatch.setattr(
        upload_zone, "show", lambda opened: None if opened else upload_zone.Uploaded("abc", ("a.ckpt",))
    )
    app = open_page("upload")
    assert not app.exception
    assert [run.name for run in run_store.runs()] == ["my log.xplane.pb"]
    assert app.title[0].value == r"my log\.xplane\.pb"
    assert "Left out, because they hold no profile: a.ckpt." in texts(app).replace("\\", "")


@pytest.fixture
def open_two_hosts(open_page, run_store, diagnosis, monkeypatch):  # noqa: ARG001  (nothing is analyzed)
    """Open an upload of two captures that name different hosts."""
    arrival = opened_logs.new_arrival(run_store)
    place = arrival / "plugins" / "profile" / "opened"
    place.mkdir(parents=True)
    for host in ("alpha", "beta"):
        space = XSpace()
        space.plane("/host:CPU").line("python").event("FunctionRun", 0, 10)
        space.write(place / f"{host}.xplane.pb", host)
    (arrival / "notes.txt").write_text("seen on Monday")
    names = ["alpha.xplane.pb", "beta.xplane.pb", "notes.txt"]
    monkeypatch.setitem(uploads._uploads, "abc", uploads.Upload(arrival, names))
    monkeypatch.setattr(upload_zone, "show", lambda opened: None if opened else upload_zone.Uploaded("abc"))
    return open_page("upload")


def test_files_of_different_hosts_are_one_job_or_several(open_two_hosts, run_store):
    app = open_two_hosts
    assert "Are they one job, or 2 jobs?" in texts(app)
    app.button(key="one-job").click().run()
    assert not app.exception
    assert app.title[0].value == "3 files"
    (run,) = run_store.runs()
    assert opened_logs.left_out(run_store.folder(run.id)) == ("notes.txt",)


def test_a_link_to_a_log_asks_the_open_question_until_it_is_answered(open_two_hosts, open_page, run_store):
    (run,) = run_store.runs()
    asked = open_page("run", run=run.id)
    assert "Are they one job, or 2 jobs?" in texts(asked)
    open_two_hosts.button(key="one-job").click().run()
    again = open_page("run", run=run.id)
    assert not again.exception
    assert again.title[0].value == "3 files"


def test_each_part_becomes_a_run_where_they_are_several_jobs(open_two_hosts, run_store):
    open_two_hosts.button(key="several-jobs").click().run()
    assert not open_two_hosts.exception
    runs = run_store.runs()
    assert sorted(run.name for run in runs) == ["alpha.xplane.pb", "beta.xplane.pb"]
    assert all(len(list(run_store.folder(run.id).opened.rglob("*.xplane.pb"))) == 1 for run in runs)
    assert open_two_hosts.title[0].value == "Which runs are there?"


@pytest.mark.usefixtures("diagnosis")
def test_keep_keeps(open_log, open_page, run_store, log):
    open_log(log)
    folder = run_store.folder(run_store.runs()[0].id)
    app = open_page("run", run=folder.id)
    app.button(key="keep").click().run()
    assert not opened_logs.is_unkept(folder)
    assert "not kept" not in texts(app)


@pytest.mark.usefixtures("diagnosis")
def test_throw_away_leaves_the_users_file_only(open_log, open_page, run_store, log):
    open_log(log)
    app = open_page("run", run=run_store.runs()[0].id)
    app.button(key="discard").click().run()
    assert not app.exception
    assert run_store.runs() == []
    assert log.read_bytes() == TRACE.read_bytes()
    assert app.title[0].value == "What is in a log?"


def test_a_log_that_cannot_be_read_says_so_on_the_page(open_log, run_store, log, monkeypatch):
    def fail(*_, **__):
        analyses.st.info("It is empty; record it again.")

    monkeypatch.setattr(analyses, "wait_for", fail)
    app = open_log(log)
    assert app.title[0].value == "What is in a log?"
    assert "It is empty" in app.info[0].value
    assert len(run_store.runs()) == 1
    app.button(key="discard").click().run()
    assert run_store.runs() == []


@pytest.mark.slow
def test_a_run_of_the_store_is_not_opened_twice(open_log, run_store, log, monkeypatch):
    monkeypatch.setattr(analyses, "wait_for", lambda *_, **__: results.diagnosis())
    open_log(log)
    app = open_log(run_store.folder(run_store.runs()[0].id).path)
    assert len(run_store.runs()) == 1
    assert app.title[0].value == r"small\_pipeline\.xplane\.pb"


@pytest.mark.parametrize(
    ("path", "sentence"), [("/no/such/log", "does not exist"), ("/proc/self/fd", "no profile log")]
)
def test_a_path_without_a_log_is_one_sentence(open_log, run_store, path, sentence):
    app = open_log(path)
    assert not app.exception
    assert sentence in app.error[0].value
    assert run_store.runs() == []


def test_paths_are_off_where_others_can_reach_the_app(open_page, monkeypatch):
    monkeypatch.setattr(access, "is_local", lambda: False)
    app = open_page("upload")
    assert not app.text_input
    assert r"PIPELINE\_LAB\_PATHS" in texts(app)


@pytest.mark.parametrize("local", [True, False])
@pytest.mark.usefixtures("diagnosis")
@pytest.mark.slow
def test_only_named_folders_may_be_opened(open_log, run_store, log, monkeypatch, local):
    monkeypatch.setattr(access, "is_local", lambda: local)
    monkeypatch.setenv(access.CHANGES_VARIABLE, "1")
    monkeypatch.setenv("PIPELINE_LAB_PATHS", str(log.parent))
    assert open_log(log.parent / "nothing" / ".." / ".." / "other").error[0].value.endswith(r"allows\.")
    (log.parent / "way-out.xplane.pb").symlink_to(TRACE)
    assert "outside" in open_log(log.parent / "way-out.xplane.pb").error[0].value
    assert not open_log(log).error
    assert len(run_store.runs()) == 1


def test_no_folder_named_means_no_path_at_all(monkeypatch):
    monkeypatch.setenv("PIPELINE_LAB_PATHS", "")
    assert "PIPELINE_LAB_PATHS" in access.why_no_paths()


def test_a_link_to_a_log_that_is_gone_shows_the_page(open_page):
    app = open_page("upload", opened="gone")
    assert not app.exception
    assert app.title[0].value == "What is in a log?"


def _ask(app, address, windows=3):
    app.text_input(key="capture-address").set_value(address)
    app.number_input(key="capture-windows").set_value(windows)
    app.button(key="capture-start").click()
    return app.run()


def test_a_capture_is_started_and_its_page_opens(open_page, run_store, monkeypatch):
    commands = []
    monkeypatch.setattr(runtime, "start_detached", lambda command, _log: commands.append(command) or os.getpid())
    app = _ask(open_page("upload"), "trainer:6009")
    assert not app.exception
    (record,) = run_store.runs()
    assert (record.name, record.status.state.is_live) == ("capture trainer:6009", True)
    assert commands[0][-2:] == [str(run_store.folder(record.id).path), "trainer:6009"]
    assert commands[0][commands[0].index("--windows") + 1] == "3"
    assert app.title[0].value.replace("\\", "") == "capture trainer:6009"
    assert "steps are not timed individually" in texts(app)


def test_what_is_no_address_is_said_in_place(open_page, run_store):
    app = _ask(open_page("upload"), "nowhere")
    assert "write HOST:PORT" in app.error[0].value.replace("\\", "")
    assert run_store.runs() == []


def test_it_is_not_offered_to_other_machines(open_page, monkeypatch):
    monkeypatch.setattr(access, "is_local", lambda: False)
    app = open_page("upload")
    assert not [one for one in app.button if one.key == "capture-start"]


def test_a_run_without_a_step_table_shows_its_verdict_while_it_goes_on(open_page, run_store, monkeypatch):
    found = results.diagnosis()
    monkeypatch.setattr(analyses, "saved", lambda _: found)
    folder = own_job_runs.begin(run_store, "watched", tags=())
    window = folder.window("window-0001")
    window.mkdir(parents=True)
    (window / "host.xplane.pb").write_bytes(b"")
    app = open_page("run", run=folder.id)
    assert not app.exception
    assert "the results of its profile windows so far" in texts(app)
    assert found.verdict.sentence in said(app.header[0].value)


def test_who_only_reads_neither_answers_nor_is_kept_from_a_log(open_two_hosts, open_page, run_store, monkeypatch):
    (run,) = run_store.runs()
    assert "Are they one job, or 2 jobs?" in texts(open_two_hosts)
    monkeypatch.setenv("PIPELINE_LAB_ALLOW_CHANGES", "0")
    shown = open_page("run", run=run.id)
    assert not shown.exception
    assert shown.title[0].value == "3 files"
    assert not run_store.folder(run.id).one_job.exists()


def test_a_log_that_was_kept_asks_nothing(open_two_hosts, open_page, run_store):
    assert "Are they one job, or 2 jobs?" in texts(open_two_hosts)
    (run,) = run_store.runs()
    opened_logs.keep(run_store.folder(run.id))
    assert open_page("run", run=run.id).title[0].value == "3 files"
