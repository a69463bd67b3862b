"""Plant bottlenecks in real jobs and see whether the verdict finds them: `python -m benchmarks.verdict`.

Thresholds are set on `--set tune`; `--set score` (the default) judges them. Needs a quiet machine: what others take from
the processor is printed with each answer, and the verdict takes it for what it is. Exit code 1 if the budget is not met.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.verdict.beside_xprof import print_beside_xprof
from benchmarks.verdict.plan import planned
from benchmarks.verdict.record import record
from benchmarks.verdict.score import report
from pipeline_lab.runs.store import RunStore


def main() -> int:
    arguments = _read_arguments()
    jobs = [
        job for job in planned(None if arguments.set == "both" else arguments.set) if _wanted(job.name, arguments.only)
    ]
    if not jobs:
        raise SystemExit(f"No job's name contains {arguments.only}; see benchmarks/verdict/plan.py.")
    folder = arguments.output or Path(tempfile.mkdtemp(prefix="verdict-"))
    os.environ.setdefault("PIPELINE_LAB_CACHE", str(folder / "cache"))
    (folder / "runs").mkdir(parents=True, exist_ok=True)
    print(f"{len(jobs)} jobs × {arguments.repetitions}; results go to {folder / 'answers.jsonl'}", flush=True)
    answers, begun_s = [], time.monotonic()
    for job, answer in record(jobs, arguments.repetitions, RunStore(folder / "runs"), folder / "answers.jsonl"):
        answers.append((job, answer))
        found = "/".join(filter(None, (answer.verdict_class, answer.cause, answer.stage)))
        mark = "right" if answer.is_right(job) else "WRONG"
        busy = "" if answer.other_cpu_percent is None else f", others took {answer.other_cpu_percent:.0f} % of a core"
        elapsed_s = time.monotonic() - begun_s
        print(f"{elapsed_s:5.0f} s  {mark}  {job.name} [{job.set}]: {found} ({answer.confidence}{busy})", flush=True)
    is_met = report(answers)
    if arguments.xprof:
        print_beside_xprof(answers)
    return 0 if is_met else 1


def _read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.verdict", description=__doc__)
    parser.add_argument("--set", choices=("tune", "score", "both"), default="score")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--only", action="append", default=[], metavar="TEXT", help="jobs whose name contains the text")
    parser.add_argument("--output", type=Path, help="folder for runs and answers; a new one by default")
    parser.add_argument("--xprof", action="store_true", help="also ask xprof about one capture of each job")
    return parser.parse_args()


def _wanted(name: str, texts: list[str]) -> bool:
    return not texts or any(text in name for text in texts)


if __name__ == "__main__":
    sys.exit(main())
