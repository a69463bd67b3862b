"""The public functions: their examples run, every kind of run and store is taken, and any other ends in one sentence."""

import doctest
import inspect
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pipeline_lab
from pipeline_lab import analyze, compare, open_trace, race, run, tune
from pipeline_lab.errors import ArgumentError, ComparisonError, OptionsError, PipelineLabError
from pipeline_lab.options.race_options import RaceOptions
from pipeline_lab.options.tune_options import TuneOptions
from pipeline_lab.runs.record import Run, RunState
from pipeline_lab.runs.run_folder import read_record
from pipeline_lab.runs.store import RunStore
from tests.support.lab import Lab, lab
from tests.support.presets import SYNTHETIC
from tests.support.recorded import recorded
from tests.support.run_folders import make_run, set_state
from tests.support.worlds import tune_options

__all__ = ["lab"]

ROOT = Path(__file__).parents[1]
TRACE = ROOT / "tests" / "data" / "small_pipeline.xplane.pb"
PLANTED = ROOT / "tests" / "support" / "planted_worker.py"
WITHOUT_TENSORFLOW = [analyze, run, race, compare, tune, open_trace]


@pytest.fixture
def here(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:  # noqa: ARG001 - it ends what it started
    """A folder to work in, with a trace in it, and a worker that knows how long steps take."""
    monkeypatch.setenv("PIPELINE_LAB_WORKER", f"{sys.executable} {PLANTED}")
    monkeypatch.chdir(tmp_path)
    shutil.copy(TRACE, tmp_path / "host.xplane.pb")
    return tmp_path


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("function", WITHOUT_TENSORFLOW, ids=lambda function: function.__name__)
def test_the_example_of_a_function_runs(function: Callable[..., Any]) -> None:
    (example,) = doctest.DocTestFinder(recurse=False).find(function, globs={})
    assert f"{function.__name__}(" in (example.docstring or "")
    said: list[str] = []
    results = doctest.DocTestRunner(verbose=False).run(example, out=said.append)
    assert results.attempted, "it has no example"
    assert not results.failed, "".join(said)


@pytest.mark.usefixtures("here")
def test_the_examples_of_the_documentation_run() -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert all(any(f"{name}(" in block for block in blocks) for name in public_names())
    names: dict[str, Any] = {}
    for block in blocks:
        if "tensorflow" not in block:
            exec(block, names)


def public_names() -> list[str]:
    return [name for name in pipeline_lab.__all__ if not name.startswith("_")]


@pytest.mark.parametrize("name", public_names())
def test_every_function_is_described_in_full(name: str) -> None:
    function = getattr(pipeline_lab, name)
    text = inspect.getdoc(function) or ""
    assert [part for part in ("Args:", "Returns:", "Raises:", "Example:") if part not in text] == []
    parameters = inspect.signature(function).parameters.values()
    assert not any(each.kind is each.VAR_KEYWORD for each in parameters)
    assert [each.name for each in parameters if f"    {each.name}: " not in text] == []


@pytest.mark.parametrize(
    ("function", "options", "positional"), [(race, RaceOptions, {"arms"}), (tune, TuneOptions, {"start"})]
)
def test_every_setting_is_a_keyword(function: Callable[..., Any], options: Any, positional: set[str]) -> None:
    fields = set(options.model_fields) - {"schema_version", "kind"} - positional
    parameters = inspect.signature(function).parameters.values()
    assert {each.name for each in parameters if each.kind is each.KEYWORD_ONLY} == fields | {"store"}


def test_every_kind_of_run_is_diagnosed_and_compared(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    folder = make_run(store)
    done = Run(folder, read_record(folder))
    kinds = [folder.id, str(folder.path), folder.path, folder, done, done.record, analyze(done)]
    found = [analyze(each, store=store) for each in kinds]
    assert {each.source.path for each in found} == {str(folder.path)}
    comparison = compare(*kinds, recorded(), TRACE, store=str(tmp_path))
    assert len(comparison.runs) == len(kinds) + 2
    assert comparison.baseline.id == folder.id


def test_every_kind_of_job_runs_in_every_kind_of_store(here: Path) -> None:
    first = run(SYNTHETIC.options, RunStore(here / "one"))
    (here / "mine.json").write_text(SYNTHETIC.options.to_json())
    RunStore(here / "one").rename(first.id, "my first")
    jobs = ("my first", "latest", "synthetic", "mine.json", first, first.record, first.id, first.path)
    again = [run(job, store="one") for job in jobs]
    assert {each.record.status.state for each in again} == {RunState.DONE}
    assert [each.record.name for each in again][:2] == ["my first", "my first"]
    assert len(RunStore(here / "one").runs()) == 1 + len(jobs)
    found = race(first, "synthetic", store=Path("one"), pairs=6)
    assert found.options.arm_names == ("my first", "synthetic")


WRONG = [5, None, b"run", object(), ["sample-baseline"], {"id": "sample-baseline"}]


@pytest.mark.parametrize("what", WRONG, ids=lambda what: type(what).__name__)
@pytest.mark.parametrize("function", WITHOUT_TENSORFLOW, ids=lambda function: function.__name__)
def test_what_is_no_run_ends_in_one_sentence(function: Callable[..., Any], what: object) -> None:
    with pytest.raises(ArgumentError, match=f"not by an object of type {type(what).__name__}") as refused:
        function(what, *[what] * (function in (race, compare)))
    assert is_one_sentence(refused.value)


@pytest.mark.parametrize("function", WITHOUT_TENSORFLOW, ids=lambda function: function.__name__)
def test_what_is_no_store_ends_in_one_sentence(function: Callable[..., Any]) -> None:
    for store in (5, b"profiles", ["profiles"]):
        with pytest.raises(ArgumentError, match="A store is a RunStore or the path of its folder") as refused:
            function("baseline", *["optimised"] * (function in (race, compare)), store=store)
        assert is_one_sentence(refused.value)


def test_what_holds_several_runs_is_refused_in_one_sentence(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    search = store.create(tune_options(), "")
    set_state(search, RunState.DONE)
    for function in (analyze, lambda run, **kwargs: compare(run, run, **kwargs)):
        with pytest.raises(ComparisonError, match="is a search") as refused:
            function(search.id, store=store)
        assert is_one_sentence(refused.value)
    with pytest.raises(OptionsError, match="is a tune itself"):
        run(search, store=store)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    "attempt",
    [
        lambda: race("baseline"),
        lambda: race(),
        lambda: race("baseline", "optimised", pairs="many"),
        lambda: compare("sample-baseline"),
        lambda: tune("baseline", budget_s=-1),
        lambda: tune("baseline", only=4),
        lambda: run("no-such-preset"),
        lambda: analyze("no-such-run"),
        lambda: analyze("sample-baseline-2", store="/no/such/folder"),
        lambda: open_trace("sample-optimised-2"),
        lambda: run("latest", store="empty"),
        lambda: race("latest", "baseline", store="empty"),
        lambda: analyze("latest", store=RunStore(Path("empty"))),
        lambda: run("x" * 5000),
        lambda: run("host.xplane.pb"),
        lambda: run("baseline", store="x" * 300),
        lambda: run("baseline", store="a\0b"),
        lambda: analyze("host.xplane.pb", store="x" * 300),
        lambda: analyze(""),
    ],
)
def test_what_cannot_be_ends_in_one_sentence(attempt: Callable[[], object]) -> None:
    with pytest.raises(PipelineLabError) as refused:
        attempt()
    assert is_one_sentence(refused.value)


def is_one_sentence(error: Exception) -> bool:
    return "\n" not in str(error) and str(error)[-1] in ".?" and len(str(error)) < 400
