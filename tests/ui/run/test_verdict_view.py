from pipeline_lab.errors import Unavailable
from pipeline_lab.ui.shared import analyses
from tests.support import results
from tests.support.run_folders import make_run


def test_without_steps_the_answer_shows_when_the_device_worked(open_page, run_store, monkeypatch):
    found = results.diagnosis(step_breakdown=Unavailable("no steps"))
    monkeypatch.setattr(analyses, "wait_for", lambda _folder, **_: found)
    app = open_page("run", run=make_run(run_store).id)
    assert not app.exception
    first = app.get("plotly_chart")[0].proto
    assert "verdict-device-timeline" in first.id
