"""Processes that analyze hardly ever collect garbage: what they make has to be freed without it."""

import gc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from pipeline_lab.analysis.diagnosis.diagnose import RunFold, diagnose
from pipeline_lab.analysis.diagnosis.saved import SavedDiagnosis
from tests.support.long_run import LongRun

DATA = Path(__file__).parents[2] / "data"


@contextmanager
def left_in_cycles() -> Iterator[Callable[[], Counter[str]]]:
    """Yield what counts, by their types, the objects that are left in cycles by what is done inside."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)

    def count() -> Counter[str]:
        gc.collect()
        return Counter(type(each).__name__ for each in gc.garbage)

    try:
        yield count
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@pytest.mark.parametrize("name", ["small_pipeline.xplane.pb", "python_between_steps.xplane.pb"])
def test_a_trace_leaves_no_cycles(name: str) -> None:
    diagnose(DATA / name)  # modules that are loaded at first use make some
    with left_in_cycles() as count:
        diagnose(DATA / name)
        assert not count()


def test_a_window_that_lands_leaves_no_cycles(tmp_path: Path) -> None:
    with closing(LongRun(tmp_path / "run")) as run:
        fold, saved = RunFold(run.folder), SavedDiagnosis(run.folder.path)

        def land(windows: int) -> None:
            run.grow(windows)
            fold.add_new()
            saved.save(fold.diagnose(), "inputs")

        land(3)
        land(4)
        with left_in_cycles() as count:
            land(5)
            assert not count()
