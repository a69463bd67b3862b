"""A run's diagnosis is made by a process of its own, and the page shows it when it is there."""

import time

import pytest

from pipeline_lab.analysis.diagnosis.saved import diagnose_saved
from tests.support.patience import until
from tests.support.run_folders import make_run
from tests.ui.conftest import charts, said, texts


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PIPELINE_LAB_CACHE", str(tmp_path / "cache"))


def run_until(app, claim):
    """Look at the page again and again until a claim about it holds."""

    def look():
        time.sleep(0.1)
        app.run()

    until(lambda: claim(app), "the page says so", look)
    return app


def test_a_run_is_analyzed_when_it_is_first_looked_at(open_page, run_store):
    folder = make_run(run_store)
    app = run_until(open_page("run", run=folder.id), lambda app: app.header)
    assert not app.exception
    assert "12 ms" in said(app.header[0].value), "each step waits 12 of 20 ms"
    assert app.metric[0].value == "20 ms"
    assert folder.analysis.is_dir()


def test_what_was_not_measured_says_so_in_its_place(open_page, run_store):
    folder = make_run(run_store)
    diagnose_saved(folder.path)
    app = open_page("run", run=folder.id, section="Idle gaps")
    assert len(charts(app)) == 1, "how long each step waited, under the sentence"
    assert "No profile window" in texts(app)
    assert next(metric for metric in app.metric if metric.label == "Time per step").value == "20 ms", (
        "as the job timed it"
    )
