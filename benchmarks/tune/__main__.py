"""How good is the search? A grid of 180 configurations is measured whole once, then searched by four methods.

``python -m benchmarks.tune --store DIR`` measures the grid by races (about 26 races of a minute or more), runs our search
five times for real (a few minutes each), replays random search and TPE on the grid, and races the picks of all of them and
AUTOTUNE's default against the grid's own best three. ``--minutes 10`` ends before a piece that would not fit in; begun again
with the same folder it goes on where it was. Every race has the same reference among its arms, and the grid holds ratios to
it alone, so that pieces measured at different hours can stand beside each other; how far that is true is printed: the
reference's own step in each race, and the grid's best three raced again. ``--tiny`` tries everything on eight configurations.
"""

import argparse
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.tune.grid import AUTOTUNE, FULL, START, TINY, Size
from benchmarks.tune.measuring import Clock, Measuring
from benchmarks.tune.replay import random_pick, tpe_pick
from pipeline_lab.errors import PipelineLabError
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.options.tune_options import TuneOptions
from pipeline_lab.runs.launch.launcher import wait
from pipeline_lab.runs.record import RunKind, RunState
from pipeline_lab.runs.store import RunStore
from pipeline_lab.tuning.halving import LEADER, Ratio
from pipeline_lab.tuning.search_launch import launch_tune, resume_tune
from pipeline_lab.tuning.search_result import Tuning, read_tuning

COUNTS = (3, 5, 8, 10, 20, 30)
REPLAYS = 200
TOP = 3
SEARCH_S = 240.0
"""About what one of our searches takes; its budget is the most."""


@dataclass(frozen=True)
class Pick:
    """What one search of one method chose.

    Attributes:
        method: Its name.
        seed: Of the search.
        name: The configuration.
        options: Its options.
        configurations: How many it measured.
        seconds: What that took; None for a replay.
    """

    method: str
    seed: int
    name: str
    options: RunOptions
    configurations: int
    seconds: float | None


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tune", description=__doc__)
    parser.add_argument(
        "--store", type=Path, required=True, help="folder that keeps every run; what it has is not run again"
    )
    parser.add_argument("--tiny", action="store_true", help="eight configurations, one seed")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="end before a piece that takes longer")
    arguments = parser.parse_args()
    root = arguments.store.absolute()
    root.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("PIPELINE_LAB_CACHE", str(root / ".cache"))
    size, store = TINY if arguments.tiny else FULL, RunStore(root)
    clock = Clock(60 * arguments.minutes)
    measuring = Measuring(store, root / "trials.jsonl", clock)
    table = measure_grid(size, measuring)
    grid_s = measuring.spent_s
    print_replays(size, table)
    picks = [*search_for_real(size, store, clock), *replay(size, table), _autotune()]
    print_answer(table, picks, race_picks(size, table, picks, measuring), grid_s)


def measure_grid(size: Size, measuring: Measuring) -> dict[str, float]:
    """Return the time of every configuration over that of one that is neither the best nor the worst."""
    known = {each.name: each.options for each in size.space.configurations()}
    reference = next(name for name in known if "map calls 4" in name and "prefetch 2" in name)
    others = {name: options for name, options in known.items() if name != reference}
    print(f"Measuring {len(known)} configurations against “{reference}”.", flush=True)
    found = measuring.race_all("grid", known[reference], others, size.pairs)
    print(f"{len(found) + 1} measured. {measuring.describe_reference()}")
    return {reference: 1.0} | {name: ratio.ratio for name, ratio in found.items()}


def search_for_real(size: Size, store: RunStore, clock: Clock) -> Iterator[Pick]:
    for seed in range(size.seeds):
        found = _search(size, store, seed, clock)
        ended = found.ended
        if ended is None:
            raise SystemExit(f"The search {found.id} did not end: {found.record.status.reason}")
        yield Pick("ours", seed, found.winner_name, found.winner, ended.configurations, ended.spent_s)


def _search(size: Size, store: RunStore, seed: int, clock: Clock) -> Tuning:
    name = f"ours, seed {seed}"
    earlier = next((run for run in store.runs() if run.kind is RunKind.TUNE and run.name == name), None)
    if earlier is not None and earlier.status.state is RunState.DONE:
        return read_tuning(store.folder(earlier.id))
    clock.begin(f"search, seed {seed}", SEARCH_S)
    if earlier is None:
        only = {knob: tuple(values) for knob, values in size.knobs.items()}
        options = TuneOptions(
            name=name, start=START, budget_s=size.budget_s, max_configurations=size.configurations, only=only, seed=seed
        )
        folder = launch_tune(store, options)
    else:
        folder = resume_tune(store, earlier.id)
    record = wait(folder)
    if record.status.state is not RunState.DONE:
        raise PipelineLabError(f"{folder.id} {record.status.state}: {record.status.reason}")
    return read_tuning(folder)


def replay(size: Size, table: Mapping[str, float]) -> Iterator[Pick]:
    space, count = size.space, size.configurations
    options = {each.name: each.options for each in space.configurations()}
    for seed in range(size.seeds):
        for method, name in (("random", random_pick(table, count, seed)), ("TPE", tpe_pick(space, table, count, seed))):
            yield Pick(method, seed, name, options[name], count, None)


def _autotune() -> Pick:
    return Pick("AUTOTUNE", 0, "AUTOTUNE", AUTOTUNE, 1, None)


def race_picks(size: Size, table: Mapping[str, float], picks: list[Pick], measuring: Measuring) -> dict[str, Ratio]:
    """Race all picks and the grid's best three against the grid's best."""
    options = {each.name: each.options for each in size.space.configurations()}
    first, *others = sorted(table, key=table.__getitem__)[:TOP]
    rivals = {name: options[name] for name in others} | {
        pick.name: pick.options for pick in picks if pick.name != first
    }
    return {first: LEADER} | measuring.race_all("picks", options[first], rivals, size.last_pairs)


def print_replays(size: Size, table: Mapping[str, float]) -> None:
    """Print how far the replayed methods are from the grid's best after n configurations."""
    best, space = min(table.values()), size.space
    counts = [count for count in COUNTS if count <= len(table)]
    print(f"\nmedian over {REPLAYS} replays of the pick's time over the best one's, on the measured grid")
    print("method  " + "".join(f"{count:>7}" for count in counts))
    for method, draw in (
        ("random", lambda count, seed: random_pick(table, count, seed)),
        ("TPE", lambda count, seed: tpe_pick(space, table, count, seed)),
    ):
        seeds = REPLAYS if method == "random" else REPLAYS // 10
        medians = [np.median([table[draw(count, seed)] / best for seed in range(seeds)]) for count in counts]
        print(f"{method:8}" + "".join(f"{median:7.2f}" for median in medians), flush=True)


def print_answer(table: Mapping[str, float], picks: list[Pick], raced: Mapping[str, Ratio], grid_s: float) -> None:
    top = [name for name in sorted(table, key=table.__getitem__)[:TOP] if name in raced]
    best = min(top, key=lambda name: raced[name].ratio)
    print(
        f"\nthe grid: {len(table)} configurations in {grid_s / 60:.0f} min; its best three, raced again: {', '.join(top)}"
    )
    apart = max(abs(raced[name].ratio / (table[name] / table[top[0]]) - 1) for name in top)
    print(f"raced again, they are at most {100 * apart:.1f} % from what the grid says of them")
    print(f"{'method':9}{'seed':>5}{'measured':>10}{'time':>9}  {'over the best':>14}  interval       pick")
    for pick in picks:
        ratio = raced.get(pick.name)
        if ratio is None:
            print(f"{pick.method:9}{pick.seed:5}  did not run: {pick.name}")
            continue
        scale = raced[best].ratio
        took = "–" if pick.seconds is None else f"{pick.seconds / 60:.1f} min"
        interval = f"{ratio.low / scale:.2f} to {ratio.high / scale:.2f}"
        print(
            f"{pick.method:9}{pick.seed:5}{pick.configurations:10}{took:>9}  {ratio.ratio / scale:14.3f}  {interval:13}  {pick.name}"
        )
    ours = [
        raced[pick.name].ratio / raced[best].ratio for pick in picks if pick.method == "ours" and pick.name in raced
    ]
    most = max(pick.configurations for pick in picks if pick.method == "ours")
    met = all(each <= 1.05 for each in ours) and most <= 8
    print(
        f"\nbudget (within 5 %, at most 8 configurations): {'met' if met else 'MISSED'}; worst {max(ours):.3f}, {most} configurations"
    )


if __name__ == "__main__":
    main()
