import dataclasses
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from pipeline_lab.advice import analyzing
from pipeline_lab.advice.analyzing import analyze_path
from pipeline_lab.errors import ComparisonError
from pipeline_lab.report.content import Content
from pipeline_lab.report.kept_overview import overview_at
from pipeline_lab.report.overview import overview
from pipeline_lab.report.renderers.terminal import render_terminal
from pipeline_lab.runs.run_folder import RunFolder, update_record

DATA = Path(__file__).parents[1] / "data"
SAMPLES = Path(__file__).parents[2] / "profiles" / "samples"


def shown(content: Content) -> str:
    console = Console(width=160, record=True, quiet=True)
    console.print(render_terminal(content), crop=False)
    return console.export_text()


def expected(path: Path) -> str:
    return shown(overview(analyze_path(path)))


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """A copy of a sample without what came with it."""
    folder = RunFolder(Path(shutil.copytree(SAMPLES / "sample-baseline", tmp_path / "copied")))
    shutil.rmtree(folder.analysis)
    return folder


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return Path(shutil.copy(DATA / "small_pipeline.xplane.pb", tmp_path))


def refuse_to_analyze(patch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("analyzed again")

    patch.setattr(analyzing, "diagnose_saved", refuse)


@pytest.mark.parametrize("name", ["sample-baseline", "sample-optimised"])
def test_samples_ship_with_the_overview_that_they_would_get_now(name: str, monkeypatch: pytest.MonkeyPatch):
    wanted = expected(SAMPLES / name)
    refuse_to_analyze(monkeypatch)
    try:
        found = overview_at(SAMPLES / name)
    except AssertionError:
        pytest.fail("make it again: make samples-analysis")
    assert shown(found) == wanted, "raise ANALYSIS_VERSION, then make samples-analysis"
    assert str(SAMPLES) not in (SAMPLES / name / "analysis" / "overview.json").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["run", "log"])
def test_a_second_look_shows_the_same_without_an_analysis(
    kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
):
    found = request.getfixturevalue(kind)
    path = found.path if isinstance(found, RunFolder) else found
    first = shown(overview_at(path))
    assert first == expected(path)
    refuse_to_analyze(monkeypatch)
    assert shown(overview_at(path)) == first


@pytest.mark.slow
def test_other_options_are_advised_on_again(run: RunFolder):
    overview_at(run.path)
    update_record(run, lambda record: dataclasses.replace(record, options=None))
    assert shown(overview_at(run.path)) == expected(run.path)


@pytest.mark.slow
def test_a_moved_run_is_shown_where_it_lies(run: RunFolder, tmp_path: Path):
    overview_at(run.path)
    moved = Path(shutil.move(run.path, tmp_path / "moved"))
    content = overview_at(moved)
    assert content.title == str(moved)
    assert shown(content) == expected(moved)


@pytest.mark.slow
def test_a_damaged_overview_is_made_again(run: RunFolder):
    first = shown(overview_at(run.path))
    kept = run.analysis / "overview.json"
    for damage in ("", "[]", kept.read_text(encoding="utf-8").replace('"class": "Answer"', '"class": "Nothing"')):
        kept.write_text(damage, encoding="utf-8")
        assert shown(overview_at(run.path)) == first


def test_a_race_is_refused(run: RunFolder):
    update_record(run, lambda record: dataclasses.replace(record, options={"kind": "race"}))
    with pytest.raises(ComparisonError):
        overview_at(run.path)
