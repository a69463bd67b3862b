"""Is `watch` right on scripts that nobody here wrote? ``python -m benchmarks.scripts --sources FOLDER --output FOLDER``.

``--sources`` holds clones of the repositories that ``entries/*.toml`` name, as ``OWNER+NAME`` each (``--list`` prints them). For each script
the truth is measured first (``truth.py``), then `watch` runs it as it is, and its verdict is held against the truth
(``score.py``; what came out when the rules were set is in ``results.json``). ``--realtime`` runs both at real-time priority, past the load of other programs. Half of the scripts are
the score set: look at it once.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.scripts.entries import Entry, read_entries
from benchmarks.scripts.score import Answer, Mark, find_truth, mark, print_shares, print_table

HERE = Path(__file__).parent
REALTIME = ("chrt", "-r", "2")
LONGEST_S = 400
PAUSE_S = 3
"""Between two at real-time priority, for everybody else."""


def main() -> int:
    chosen = _read_arguments()
    entries = read_entries(chosen.only, chosen.set)
    if chosen.list:
        for entry in entries:
            print(f"{entry.set:5} {entry.name:32} {entry.repository}@{entry.commit[:10]} {entry.path}: {entry.style}")
        return 0
    chosen.output.mkdir(parents=True, exist_ok=True)
    marks, failed = [], []
    for entry in entries:
        try:
            found = _judge(entry, chosen)
            marks += [] if found is None else [found]
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            failed.append(f"{entry.name}: {str(error)[-300:]}")
            print(f"FAILED {failed[-1]}", flush=True)
    print_table(marks)
    print()
    print_shares(marks)
    (chosen.output / "marks.json").write_text(json.dumps([one.to_json() for one in marks], indent=1), encoding="utf-8")
    return 1 if failed else 0


def _read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scripts", description=__doc__)
    parser.add_argument("--sources", type=Path, help="folder of clones")
    parser.add_argument("--output", type=Path, default=Path("/tmp/scripts-benchmark"))
    parser.add_argument("--set", choices=("tune", "score", "fresh", "unseen", "later", "last", "all"), default="tune")
    parser.add_argument(
        "--only", action="append", default=[], metavar="TEXT", help="scripts whose name contains the text"
    )
    parser.add_argument(
        "--phase", choices=("truth", "watch", "score"), action="append", help="only this; all by default"
    )
    parser.add_argument("--again", action="store_true", help="measure also what has been measured")
    parser.add_argument("--realtime", action="store_true", help="at real-time priority")
    parser.add_argument("--lock", type=Path, help="with it: file to lock, where others run at that priority too")
    parser.add_argument("--list", action="store_true", help="print the scripts")
    chosen = parser.parse_args()
    if chosen.sources is None and not chosen.list:
        parser.error("--sources is needed: a folder of clones of the repositories that --list prints")
    return chosen


def _judge(entry: Entry, chosen: argparse.Namespace) -> Mark | None:
    folder = chosen.output.absolute() / "work" / entry.name
    folder.mkdir(parents=True, exist_ok=True)
    phases = chosen.phase or ["truth", "watch", "score"]
    if "truth" in phases and (chosen.again or not (folder / "truth.json").exists()):
        command = ["-m", "benchmarks.scripts.truth", entry.name, "--sources", str(chosen.sources.absolute())]
        _run(command, folder, chosen, "truth.log")
    text = entry.text(chosen.sources, epochs=entry.epochs[1])
    if "watch" in phases and (chosen.again or not _runs(folder)):
        shutil.rmtree(folder / "runs", ignore_errors=True)
        (folder / "train.py").write_text(text, encoding="utf-8")
        options = ["--store", str(folder / "runs"), "--name", entry.name, "--quiet"]
        _run(["-m", "pipeline_lab.capture.watch_script", *options, "train.py"], folder, chosen, "watch.log")
    if "score" not in phases:
        return None
    measured = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
    return mark(entry, find_truth(entry, measured), _read_answer(_runs(folder)[0]), text)


def _runs(folder: Path) -> list[Path]:
    return sorted(path.parent for path in (folder / "runs").glob("*/run.json"))


def _run(command: list[str], folder: Path, chosen: argparse.Namespace, log: str) -> None:
    site = chosen.output.absolute() / "stand_ins" / "site-packages"
    site.mkdir(parents=True, exist_ok=True)
    shutil.copy(HERE / "stand_ins.py", site)
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join((str(site), str(HERE.parents[1]))),
        "PIPELINE_LAB_CACHE": str(chosen.output.absolute() / "cache"),
        "TF_CPP_MIN_LOG_LEVEL": "2",
    }
    if chosen.realtime:
        time.sleep(PAUSE_S)
    print(f"… {folder.name}: {' '.join(command[1:3])}", flush=True)
    lock = ("flock", str(chosen.lock)) if chosen.lock else ()
    whole = [*lock, *(REALTIME if chosen.realtime else ()), sys.executable, *command]
    with (folder / log).open("w", encoding="utf-8") as said:
        done = subprocess.run(
            whole, cwd=folder, env=environment, stdout=said, stderr=subprocess.STDOUT, timeout=LONGEST_S, check=False
        )
    if done.returncode:
        lines = (folder / log).read_text(encoding="utf-8", errors="replace").splitlines()
        raise ValueError(f"{log} ended with {done.returncode}: {' | '.join(lines[-3:])}")


def _read_answer(run: Path) -> Answer:
    import pipeline_lab
    from pipeline_lab.errors import Unavailable

    shutil.rmtree(run / "analysis", ignore_errors=True)  # judged by the rules as they are now
    diagnosis = pipeline_lab.analyze(run)
    verdict, job, ends = diagnosis.verdict, diagnosis.job_steps, diagnosis.iterator_ends
    functions = dict.fromkeys(part.function for call in verdict.calls for part in call.python)
    return Answer(
        verdict=verdict.verdict_class.value,
        cause=verdict.cause,
        confidence=verdict.confidence.value,
        sentence=verdict.sentence,
        places=[
            *(f"{call.place}-{call.place.end_line}" for call in verdict.calls if call.place is not None),
            *(f"{Path(of.file).name}:{of.line}-{of.end_line}" for of in functions if of.file),
        ],
        suggestions=[
            (one.change, None if isinstance(one.predicted_gain_percent, Unavailable) else one.predicted_gain_percent)
            for one in verdict.suggestions
        ],
        run=str(run),
        step_ms=None if isinstance(job, Unavailable) else job.mean_ns / 1e6,
        ends_percent=0.0
        if isinstance(ends, Unavailable) or isinstance(job, Unavailable)
        else 100.0 * ends.total_ns / (job.count * job.mean_ns),
    )


if __name__ == "__main__":
    sys.exit(main())
