"""The comparison with XProf on a run's page: asked for, waited for, shown, kept."""

import sys

import pytest

from pipeline_lab.analysis.diagnosis.saved import SavedDiagnosis, fingerprint_inputs
from pipeline_lab.analysis.xprof.xprof_comparison import CROSS_CHECK, CrossCheck, XprofDifference
from pipeline_lab.runs import own_job_runs
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.run_folder import end_run
from pipeline_lab.ui.run import details
from pipeline_lab.ui.shared import analyses
from tests.support.patience import until
from tests.support.run_folders import make_run
from tests.ui.conftest import texts

SECTION = "XProf"
CHECK = CrossCheck(
    "2.24.2",
    1.5,
    80_000_000,
    (
        XprofDifference("steps", "2", "none", ("A *loop* runs inside the steps.",)),
        XprofDifference("verdict", "a", "b", ()),
    ),
)


@pytest.fixture(autouse=True)
def own_attempts(monkeypatch):
    monkeypatch.setattr(details, "_attempts", analyses.Attempts())


@pytest.mark.usefixtures("diagnosis")
def test_xprof_is_asked_only_on_request(open_page, run_store, monkeypatch, tmp_path):
    over = tmp_path / "over"
    wait = f"import pathlib, time\nwhile not pathlib.Path({str(over)!r}).exists(): time.sleep(0.02)"
    monkeypatch.setattr(analyses, "module_command", lambda *_: [sys.executable, "-c", wait])
    folder = make_run(run_store)
    app = open_page("run", run=folder.id, section=SECTION)
    assert details._attempts.find(folder) is None
    app.button(key="ask-xprof").click().run()
    attempt = details._attempts.find(folder)
    try:
        assert attempt.is_running
        assert "XProf is reading" in "".join(one.value for one in app.markdown)
    finally:
        over.touch()
        until(lambda: not attempt.is_running, "it has ended")


@pytest.mark.usefixtures("diagnosis")
def test_a_saved_answer_is_shown_at_once(open_page, run_store):
    folder = make_run(run_store)
    SavedDiagnosis(folder.path).save_beside(CROSS_CHECK, CHECK, fingerprint_inputs(folder.path))
    app = open_page("run", run=folder.id, section=SECTION)
    assert not app.exception
    table = app.table[0].value
    assert list(table["Quantity"]) == ["steps", "verdict"]
    assert list(table["Why they differ"]) == [r"A \*loop\* runs inside the steps\.", "–"]
    assert "1.5 s" in texts(app)


@pytest.mark.usefixtures("diagnosis")
def test_an_attempt_that_failed_says_why_and_can_be_repeated(open_page, run_store, monkeypatch):
    monkeypatch.setattr(analyses, "module_command", lambda *_: [sys.executable, "-c", "raise SystemExit(1)"])
    folder = make_run(run_store)
    SavedDiagnosis(folder.path).save_error("The traces are gone.")
    attempt = details._attempts.start(folder, "--xprof")
    until(lambda: not attempt.is_running, "it has ended")
    app = open_page("run", run=folder.id, section=SECTION)
    assert app.info[0].value == r"The traces are gone\."
    assert app.button(key="ask-xprof")


def test_the_answer_goes_stale_with_the_traces(run_store):
    folder = make_run(run_store)
    place = SavedDiagnosis(folder.path)
    place.save_beside(CROSS_CHECK, CHECK, fingerprint_inputs(folder.path))
    assert place.load_beside(CROSS_CHECK, CrossCheck) == CHECK
    folder.window("w").mkdir(parents=True)
    (folder.window("w") / "h.xplane.pb").write_bytes(b"new")
    assert place.load_beside(CROSS_CHECK, CrossCheck) is None


@pytest.mark.usefixtures("diagnosis")
def test_a_watched_job_is_not_called_one_that_was_not_recorded(open_page, run_store):
    folder = own_job_runs.begin(run_store, "train.py", tags=())
    end_run(folder, RunState.DONE)
    written = texts(open_page("run", run=folder.id, section="Options and source")).replace("\\", "")
    assert "did not record" not in written
    assert "The job was watched as it is" in written
