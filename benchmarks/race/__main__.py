"""Are races right, and how often? Naive methods stand beside them.

``python -m benchmarks.race simulate`` races drawn step series: minutes. ``python -m benchmarks.race real --races 200``
races real jobs, some 5 s each; stopped and started again it goes on where it was, and ``--races 0`` prints how it stands.
"""

import argparse
from pathlib import Path

from benchmarks.race.noise import NOISES
from benchmarks.race.real import SERIES, print_series, run_series
from benchmarks.race.simulate import score_naive, score_races
from pipeline_lab.statistics.sequential import SequentialPlan

RATIOS = (1.0, 1.05, 1.1, 1.2)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.race", description=__doc__)
    modes = parser.add_subparsers(dest="mode", required=True)
    simulate = modes.add_parser("simulate", help="races on drawn step series; takes a second for about five races")
    simulate.add_argument("--races", type=int, default=200, help="races per noise and planted ratio")
    simulate.add_argument("--noise", choices=[noise.name for noise in NOISES], action="append")
    simulate.add_argument("--pairs", type=int, default=SequentialPlan.max_pairs)
    real = modes.add_parser("real", help="races of real jobs, about 5 s each; resumes from its store")
    real.add_argument("--races", type=int, default=200, help="races of each kind")
    real.add_argument("--kind", choices=[series.name for series in SERIES], action="append")
    real.add_argument("--pairs", type=int, default=SequentialPlan.max_pairs)
    real.add_argument("--store", type=Path, required=True, help="folder that keeps the races")
    arguments = parser.parse_args()
    if arguments.mode == "simulate":
        print_simulation(arguments.races, arguments.pairs, arguments.noise)
    else:
        race_for_real(arguments.races, arguments.pairs, arguments.kind, arguments.store)


def race_for_real(races: int, pairs: int, names: list[str] | None, store: Path) -> None:
    chosen = [series for series in SERIES if not names or series.name in names]
    for series in chosen:
        run_series(series, races, pairs, store.absolute())
    for series in chosen:
        print_series(series, store.absolute())


def print_simulation(races: int, pairs: int, names: list[str] | None) -> None:
    plan = SequentialPlan(max_pairs=pairs)
    print(f"{races} races each, at most {pairs} pairs of 10-step blocks, alpha {plan.alpha}, early stopping on")
    print("noise        ratio  called different  wrong way  equivalent  covered  pairs  half width")
    chosen = [noise for noise in NOISES if not names or noise.name in names]
    for noise in chosen:
        for ratio in RATIOS:
            score = score_races(noise, ratio, races, plan)
            print(
                f"{noise.name:12} {ratio:5.2f}  {score.called_different:16.1%}  {score.wrong_way:9.1%}  "
                f"{score.equivalent:10.1%}  {score.covered:7.1%}  {score.pairs:5.1f}  {score.half_width:10.1%}",
                flush=True,
            )
    print("\nnaive methods: called different")
    for noise in chosen:
        for ratio in RATIOS:
            for method, share in score_naive(noise, ratio, races, plan).items():
                print(f"{noise.name:12} {ratio:5.2f}  {share:6.1%}  {method}", flush=True)


if __name__ == "__main__":
    main()
