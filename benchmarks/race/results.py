"""How real races ended, one line of JSON each, so that a long series can be read while it goes on and be resumed."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from scipy import stats

from pipeline_lab.comparison.race_result import read_race
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.run_tables import STEPS, read_table
from pipeline_lab.statistics.outcome import Outcome


@dataclass(frozen=True)
class RaceEnd:
    """One race of a series.

    Attributes:
        kind: Series that it belongs to.
        number: Of the race in its series; its seed.
        arms: What raced, as the series calls it.
        outcome: The word for the candidate.
        pairs, ratio, low, high: Of the interval at the end; None before the first look.
        step_ms: Mean step of the baseline, ms.
        other_load_percent: What other programs used of the cores.
        naive_differs: Welch's test on all measured steps calls the arms different.
    """

    kind: str
    number: int
    arms: str
    outcome: str
    pairs: int
    ratio: float | None
    low: float | None
    high: float | None
    step_ms: float
    other_load_percent: float | None
    naive_differs: bool

    @property
    def is_different(self) -> bool:
        return self.outcome in (Outcome.FASTER, Outcome.SLOWER)

    def covers(self, ratio: float) -> bool:
        return (self.low or 0.0) <= ratio <= (self.high or np.inf)


def read_end(kind: str, number: int, arms: str, folder: RunFolder) -> RaceEnd:
    race = read_race(folder)
    document = race.candidates[0].to_json()
    return RaceEnd(
        kind,
        number,
        arms,
        outcome=document["outcome"],
        pairs=document["pairs"] or 0,
        ratio=document["ratio"],
        low=document["low"],
        high=document["high"],
        step_ms=race.arms[0].step_ns / 1e6,
        other_load_percent=race.other_load_percent,
        naive_differs=_differs_naively(folder),
    )


def append_end(root: Path, end: RaceEnd) -> None:
    with (root / "ends.jsonl").open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(asdict(end)) + "\n")


def read_ends(root: Path, kind: str) -> list[RaceEnd]:
    """Return the races of a kind that have ended."""
    try:
        lines = (root / "ends.jsonl").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    return [end for end in (RaceEnd(**json.loads(line)) for line in lines) if end.kind == kind]


def print_ends(kind: str, ratio: float, ends: Sequence[RaceEnd]) -> None:
    """Print how often the races of a kind were right, all together and by what raced."""
    for arms in ("", *sorted({end.arms for end in ends})):
        chosen = [end for end in ends if not arms or end.arms == arms]
        if not chosen:
            continue
        different = sum(end.is_different for end in chosen)
        wrong_way = sum(end.outcome == (Outcome.FASTER if ratio > 1 else Outcome.SLOWER) for end in chosen)
        print(
            f"{kind:10} {arms or 'all':10} {len(chosen):4} races  different {different:3}"
            f"{'' if ratio == 1 else f' (the wrong way {wrong_way})'}  "
            f"equivalent {sum(end.outcome == Outcome.EQUIVALENT for end in chosen):3}  "
            f"covered {np.mean([end.covers(ratio) for end in chosen]):6.1%}  "
            f"pairs {np.mean([end.pairs for end in chosen]):5.1f}  "
            f"median ratio {np.median([end.ratio or np.nan for end in chosen]):.3f}  "
            f"load {np.mean([end.other_load_percent or 0.0 for end in chosen]):.0f} %  "
            f"naive: pooled steps, Welch {np.mean([end.naive_differs for end in chosen]):6.1%}"
        )


def _differs_naively(folder: RunFolder) -> bool:
    """Compare all measured steps of both arms as if they were independent."""
    times = []
    for number in range(2):
        steps = read_table(folder.arm(number).steps, STEPS)
        measured = ~steps["warmup"].to_numpy(zero_copy_only=False)
        times.append((steps["end_ns"].to_numpy() - steps["start_ns"].to_numpy())[measured])
    return bool(stats.ttest_ind(*times, equal_var=False).pvalue < 0.05)
