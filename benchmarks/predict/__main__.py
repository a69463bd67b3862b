"""Predict changed configurations from one run each, and race them: `python -m benchmarks.predict`.

66 changes of three workloads; needs a quiet machine and about 20 minutes. Exit code 1 if the budget is not met: errors
beyond the races' own intervals of 10 % (median) and 25 % (90th percentile).
"""

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from benchmarks.predict.plan import plans
from benchmarks.predict.record import Race, predict_again, read, record
from benchmarks.predict.score import report
from pipeline_lab.runs.store import RunStore


def main() -> int:
    arguments = _read_arguments()
    folder = arguments.output or Path(tempfile.mkdtemp(prefix="predict-"))
    (folder / "runs").mkdir(parents=True, exist_ok=True)
    output = folder / "outcomes.jsonl"
    outcomes = read(output)
    if arguments.again:
        print("As it was predicted then:")
        report(outcomes)
        print("As it is predicted now, from the same runs and against the same races:")
        return 0 if report(predict_again(outcomes, plans(), RunStore(folder / "runs"))) else 1
    done = {(outcome.workload, outcome.change) for outcome in outcomes}
    print(f"Results go to {output}; those that are there already are kept.", flush=True)
    for plan in plans():
        wanted = tuple(
            change
            for change in plan.changes
            if (plan.name, change.name) not in done and _is_wanted(f"{plan.name}, {change.name}", arguments.only)
        )
        if not wanted and not arguments.suggestions:
            continue
        limits = Race(pairs=arguments.pairs, max_seconds=arguments.seconds, max_extra_load_percent=arguments.extra_load)
        chosen = replace(plan, changes=wanted)
        runs = RunStore(folder / "runs")
        for outcome in record(chosen, runs, output, limits, suggested=arguments.suggestions):
            outcomes.append(outcome)
            predicted = "–" if outcome.predicted is None else f"{outcome.predicted:.2f}"
            raced = "–" if not outcome.is_known else f"{outcome.ratio:.2f} ({outcome.low:.2f} to {outcome.high:.2f})"
            print(f"  {outcome.change}: predicted {predicted}, raced {raced}; {outcome.binding}", flush=True)
    return 0 if report(outcomes) else 1


def _read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.predict", description=__doc__)
    parser.add_argument(
        "--only", action="append", default=[], metavar="TEXT", help="changes whose name contains the text"
    )
    parser.add_argument(
        "--suggestions", action="store_true", help="race what the lab suggests for the three runs instead"
    )
    parser.add_argument("--again", action="store_true", help="predict again what --output holds; race nothing")
    parser.add_argument("--pairs", type=int, default=12, help="rounds of each race")
    parser.add_argument("--seconds", type=float, default=90.0, help="longest race")
    parser.add_argument(
        "--extra-load",
        type=float,
        default=25.0,
        help="load of others that makes a round not count, percent of the cores",
    )
    parser.add_argument("--output", type=Path, help="folder for runs and outcomes; a new one by default")
    return parser.parse_args()


def _is_wanted(name: str, texts: list[str]) -> bool:
    return not texts or any(text in name for text in texts)


if __name__ == "__main__":
    sys.exit(main())
