"""What a run costs that records very many windows: to analyze, to keep up with, to open again.

    python -m benchmarks.windows                      # 300 and 2,000 windows, a minute or two
    python -m benchmarks.windows --windows 10000      # ten minutes of disk and patience less

Each window is the small capture of `tests/data`, moved in time; steps lie 30 s apart and windows 300 s, so that 288 windows
are a day. "New window" is what the process that follows a run does when one more window lands after all the others.
"""

import argparse
import resource
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from pipeline_lab.analysis.diagnosis.diagnose import RunFold
from pipeline_lab.analysis.diagnosis.executors import processes_if_many
from pipeline_lab.analysis.diagnosis.inputs import WindowList
from pipeline_lab.analysis.diagnosis.saved import SavedDiagnosis, diagnose_saved, fingerprint_inputs
from pipeline_lab.analysis.timeline.build import build_index
from pipeline_lab.collecting import collect_rarely
from pipeline_lab.figures.chart_list import CHARTS
from tests.support.long_run import LongRun

LATER = 10
"""Windows that land one after another on a run of that length, of which the median counts."""


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Return wall and processor seconds, those of processes that it began included."""
    begin, cpu = time.perf_counter(), _cpu_s()
    work()
    return time.perf_counter() - begin, _cpu_s() - cpu


def _cpu_s() -> float:
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in spent)


def follow(run: LongRun, fold: RunFold, saved: SavedDiagnosis) -> float:
    """Let one window after another land; return what each one costs, seconds."""
    windows = WindowList(run.folder)
    windows.look()

    def land() -> None:
        listed = windows.look()
        inputs = fingerprint_inputs(run.folder.path, windows)
        fold.add_new(listed=listed)
        saved.save(fold.diagnose(), inputs)

    costs = []
    for _ in range(LATER):
        run.grow(run.windows + 1)
        costs.append(timed(land)[1])
    return statistics.median(costs)


def measure(folder: Path, windows: int) -> Iterator[str]:
    run = LongRun(folder / f"run-{windows}")
    run.grow(windows)
    path = run.folder.path
    wall_s, cpu_s = timed(lambda: diagnose_saved(path, spread=processes_if_many()))
    yield f"{wall_s:.1f}"
    yield f"{cpu_s:.1f}"
    yield f"{1000 * cpu_s / windows:.1f}"
    yield f"{timed(lambda: SavedDiagnosis(path).load())[0]:.2f}"
    diagnosis = SavedDiagnosis(path).load()
    assert diagnosis is not None, "nothing was saved"
    yield f"{timed(lambda: [chart.draw(diagnosis, 'light') for chart in CHARTS])[0]:.1f}"
    yield f"{timed(lambda: build_index(path, diagnosis, _made(folder / 'index')))[0]:.1f}"
    yield f"{sum(file.stat().st_size for file in run.folder.analysis.rglob('*')) / 1e6:.1f}"
    fold = RunFold(run.folder)
    fold.add_new()
    fold.diagnose()
    yield f"{1000 * follow(run, fold, SavedDiagnosis(path)):.0f}"
    run.close()
    yield f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f}"


def _made(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


COLUMNS = ("first, s", "cpu s", "ms each", "again, s", "charts, s", "axis, s", "MB kept", "new, ms", "peak GB")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--windows", type=int, nargs="+", default=[300, 2000])
    options = parser.parse_args()
    collect_rarely()  # as the process does that follows a run
    print(f"{'windows':>8}", *(f"{column:>10}" for column in COLUMNS))
    with tempfile.TemporaryDirectory() as folder:
        for windows in options.windows:
            print(f"{windows:>8}", end=" ", flush=True)
            for text in measure(Path(folder), windows):
                print(f"{text:>10}", end=" ", flush=True)
            print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
