"""Real races of the synthetic workload whose truth is known; the store keeps them, so that a long series resumes.

Both arms of ``same`` are alike. In ``slower-5`` and its like the candidate's step computes that much longer, and its
pipeline is fast enough not to matter (a millisecond per step that is no computing pulls the true ratio towards 1: 1.19
instead of 1.2). In ``refill`` both wait for the same slow pipeline, but one has a buffer of 64
batches where the other has two: what it gathers while it rests must not count.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats

from pipeline_lab.comparison.race import Race, read_race
from pipeline_lab.options.pipeline import BatchStage, MapStage, PipelineOptions, PrefetchStage, ReadStage, RepeatStage
from pipeline_lab.options.race import RaceOptions
from pipeline_lab.options.run import RunOptions
from pipeline_lab.options.workload import SyntheticWorkload
from pipeline_lab.runs.launcher import launch_race, wait
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.store import RunFolder, RunStore
from pipeline_lab.runs.tables import STEPS, read_table
from pipeline_lab.statistics.outcome import Outcome

BATCH = 16
COMPUTE_MS = 15.0


@dataclass(frozen=True)
class Series:
    """Races of one kind; ``ratio`` is the true one."""

    name: str
    ratio: float
    arms: tuple[RunOptions, RunOptions]


def _arm(name: str, *, compute_ms: float = COMPUTE_MS, map_ms: float = 0.05, prefetch: int = 2) -> RunOptions:
    stages = (ReadStage(), RepeatStage(), MapStage(), BatchStage(size=BATCH), PrefetchStage(buffer_size=prefetch))
    return RunOptions(
        name=name,
        workload=SyntheticWorkload(map_ms=map_ms, compute_ms=compute_ms, work="spin"),
        pipeline=PipelineOptions(stages=stages, tensorflow_rewrites=False),
    )


SERIES = (
    Series("same", 1.0, (_arm("one"), _arm("other"))),
    *(
        Series(
            f"slower-{percent}",
            1 + percent / 100,
            (_arm("one"), _arm("other", compute_ms=COMPUTE_MS * (1 + percent / 100))),
        )
        for percent in (5, 10, 20)
    ),
    Series(
        "refill",
        1.0,
        (_arm("two", map_ms=0.6, compute_ms=2.0), _arm("sixty-four", map_ms=0.6, compute_ms=2.0, prefetch=64)),
    ),
)


def run_series(series: Series, races: int, pairs: int, root: Path) -> None:
    """Race until the store holds so many finished races of this kind."""
    store = RunStore(root)
    done = len(_finished(series, store))
    for number in range(done, races):
        options = RaceOptions(name=series.name, arms=series.arms, pairs=pairs, seed=number, max_seconds=120)
        record = wait(launch_race(store, options))
        print(f"{series.name} {number + 1}/{races}: {record.status.state.value} {record.status.reason}", flush=True)


def print_series(series: Series, root: Path) -> None:
    """Print how often the races of a kind were right."""
    found = [(read_race(folder), folder) for folder in _finished(series, RunStore(root))]
    if not found:
        return
    ends = [(race.candidates[0].standing, race) for race, _ in found]
    results = [standing.result for standing, _ in ends if standing.result is not None]
    outcomes = [standing.outcome for standing, _ in ends]
    different = np.mean([outcome in (Outcome.FASTER, Outcome.SLOWER) for outcome in outcomes])
    covered = np.mean([result.low <= series.ratio <= result.high for result in results])
    print(
        f"{series.name:10} {len(found):5} races  different {different:6.1%}  "
        f"equivalent {np.mean([outcome is Outcome.EQUIVALENT for outcome in outcomes]):6.1%}  covered {covered:6.1%}  "
        f"pairs {np.mean([result.pairs for result in results]):5.1f}  median ratio "
        f"{np.median([result.ratio for result in results]):.3f}  load {_load(race for _, race in ends):.0f} %  "
        f"naive: pooled steps, Welch {np.mean([_differs_naively(folder) for _, folder in found]):6.1%}"
    )


def _finished(series: Series, store: RunStore) -> list[RunFolder]:
    runs = [run for run in store.runs() if run.name == series.name and run.status.state is RunState.DONE]
    return [store.folder(run.id) for run in runs]


def _load(races: Iterator[Race]) -> float:
    return float(np.mean([race.other_load_percent or 0.0 for race in races]))


def _differs_naively(folder: RunFolder) -> bool:
    """Compare all measured steps of both arms as if they were independent."""
    times = []
    for number in range(2):
        steps = read_table(folder.arm(number).steps, STEPS)
        measured = ~steps["warmup"].to_numpy(zero_copy_only=False)
        times.append((steps["end_ns"].to_numpy() - steps["start_ns"].to_numpy())[measured])
    return bool(stats.ttest_ind(*times, equal_var=False).pvalue < 0.05)
