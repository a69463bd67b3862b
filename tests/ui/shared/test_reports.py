"""Reports as downloads: the bytes of the command line, and nothing for a link that is not one."""

import io
import json
import zipfile
from dataclasses import replace

import pytest

from pipeline_lab.analysis.diagnosis.saved import diagnose_saved
from pipeline_lab.comparison.opening import open_any
from pipeline_lab.report.formats import FORMATS
from pipeline_lab.report.renderers import chart_images, markdown
from pipeline_lab.report.report_on import report_on
from pipeline_lab.runs.record import RunState
from pipeline_lab.ui.shared.reports import ROUTES, report_url
from tests.support.asgi import ask
from tests.support.images import draw_letters
from tests.support.run_folders import make_run, set_state
from tests.support.saved_runs import make_saved_run, make_watched_race


@pytest.fixture(autouse=True)
def no_images(monkeypatch):
    monkeypatch.setattr(markdown, "image_support", lambda: chart_images.MISSING)
    monkeypatch.setattr(chart_images, "draw_images", draw_letters)


@pytest.mark.slow
@pytest.mark.parametrize("report_format", FORMATS, ids=lambda each: each.name)
def test_a_race_comes_with_the_bytes_of_the_command_line(run_store, report_format):
    folder = make_watched_race(run_store, 8)
    answer = ask(ROUTES, report_url([folder.id], report_format.name))
    assert answer.status == 200
    assert answer.body == report_format.render(report_on([open_any(folder.path)]))
    assert answer.headers["content-disposition"].startswith("attachment")


@pytest.mark.parametrize("report_format", FORMATS, ids=lambda each: each.name)
@pytest.mark.slow
def test_a_run_comes_with_the_bytes_of_the_command_line(run_store, report_format):
    folder = make_run(run_store)
    diagnose_saved(folder.path)
    answer = ask(ROUTES, report_url([folder.id], report_format.name))
    assert answer.body == report_format.render(report_on([open_any(folder.path)]))


def test_runs_side_by_side_come_with_the_baseline_first(run_store):
    ids = [make_saved_run(run_store, preset, factor).id for preset, factor in (("baseline", 1.0), ("optimised", 0.5))]
    document = json.loads(ask(ROUTES, report_url(ids, "json")).body)
    assert [run["name"] for run in document["runs"]] == ["baseline", "optimised"]
    assert document["step_time"][0]["ratio"] == pytest.approx(0.5, abs=0.02)
    tables = zipfile.ZipFile(io.BytesIO(ask(ROUTES, report_url(ids, "csv")).body))
    assert "step_time.csv" in tables.namelist()


@pytest.mark.slow
def test_a_report_with_images_travels_as_a_zip(run_store, monkeypatch):
    monkeypatch.setattr(markdown, "image_support", lambda: None)
    monkeypatch.setattr(markdown, "draw_images", draw_letters)
    answer = ask(ROUTES, report_url([make_saved_run(run_store).id], "markdown"))
    names = zipfile.ZipFile(io.BytesIO(answer.body)).namelist()
    assert answer.headers["content-type"] == "application/zip"
    assert names[0].endswith(".md")
    assert all(name.endswith(".png") for name in names[1:])


@pytest.mark.slow
def test_notes_are_in_the_report(run_store):
    folder = make_saved_run(run_store)
    run_store.update(folder.id, lambda record: replace(record, notes="</script><b>mine</b>"))
    html = ask(ROUTES, report_url([folder.id], "html")).body.decode()
    assert "&lt;b&gt;mine" in html
    assert "</script><b>" not in html


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/lab/reports/html?runs=nothing", 404),
        ("/api/lab/reports/html?runs=../../etc", 404),
        ("/api/lab/reports/html?runs=%2e%2e%2fsecret", 404),
        ("/api/lab/reports/html", 404),
        ("/api/lab/reports/exe?runs=nothing", 404),
        ("/api/lab/reports/html?runs=" + ",".join(map(str, range(21))), 404),
    ],
)
@pytest.mark.usefixtures("run_store")
def test_a_link_that_is_none_is_one_sentence(path, status):
    answer = ask(ROUTES, path)
    assert answer.status == status
    assert json.loads(answer.body)["error"].endswith(".")


def test_a_run_without_its_diagnosis_is_named(run_store):
    answer = ask(ROUTES, report_url([make_run(run_store).id], "html"))
    assert answer.status == 409
    assert "baseline is not analyzed yet" in json.loads(answer.body)["error"]


def test_a_run_that_works_has_no_report_yet(run_store):
    folder = make_saved_run(run_store)
    set_state(folder, RunState.RUNNING)
    assert ask(ROUTES, report_url([folder.id], "html")).status == 409


def test_a_race_among_runs_is_refused(run_store):
    ids = [make_saved_run(run_store).id, make_watched_race(run_store, 8).id]
    answer = ask(ROUTES, report_url(ids, "json"))
    assert (answer.status, json.loads(answer.body)["error"][:6]) == (409, "A race")
