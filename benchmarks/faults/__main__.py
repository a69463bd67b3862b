"""Break what is under way, in each of its phases, and look what is shown and what is left.

    python -m benchmarks.faults                                    # everything, some 25 minutes
    python -m benchmarks.faults --jobs run watch --faults kill-worker

Each case starts a command of its own store, waits for a phase, breaks something and waits until the command has ended. Then
the run has to say what happened, hold every window that was whole before, be readable by ``analyze`` and ``runs list``, and
have left no process, no place in the queue and no temporary file. What is wrong in a case stands in its last column. A full
disk is a small one that is mounted, which takes the right to do so (``unshare -rm`` gives it).
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.faults.case import COMMAND, Case, command_of, until
from benchmarks.faults.harm import FAULTS, PAUSE_S, Fault, full_disk, make_room, on_small_disk, take_disk_away
from benchmarks.faults.jobs import JOBS, Job
from benchmarks.faults.torn_files import tear
from benchmarks.impossible import find_impossible
from pipeline_lab.runs.record import RunRecord, RunState, RunStatus
from pipeline_lab.runs.run_folder import BEGIN_S, RunFolder
from pipeline_lab.runs.store import RunStore

LONGEST_S, LEAVING_S = 120.0, 20.0


def measure(job: Job, phase: str, fault: Fault, folder: Path) -> tuple[str, str, str]:
    """Return the state that is shown, what is left, and what is wrong."""
    case = Case(folder)
    if fault is full_disk:
        on_small_disk(case)
    try:
        return _measure(case, job, phase, fault)
    finally:
        take_disk_away(case)


def _measure(case: Case, job: Job, phase: str, fault: Fault) -> tuple[str, str, str]:
    folder = case.folder
    arguments = [argument.format(port=case.port) for argument in job.arguments]
    with (folder / "output").open("w") as output:
        case.process = subprocess.Popen(
            [*COMMAND, *arguments], env=case.environment, cwd=folder, stdout=output, stderr=output, text=True
        )
        if job.beside is not None:
            threading.Thread(target=job.beside, args=(case.port,), daemon=True).start()
        has_begun = job.phases[phase]()
        if not until(lambda: has_begun(case) or case.process.poll() is not None, LONGEST_S):
            case.end()
            return "–", "–", "the phase never began"
        windows = case.windows()
        if not fault(case, job):
            case.end()
            return "–", "–", "nothing there to harm"
        problems = list(_judge(case, job, windows))
    output_text = (folder / "output").read_text(encoding="utf-8", errors="replace") + "".join(case.outputs)
    is_own = any(f"\n{each}\n" in output_text for each in job.raises)
    problems += ["a traceback"] if "Traceback (most recent" in output_text and not is_own else []
    left = f"{len(case.windows())} windows (before {len(windows)})"
    return (case.state() if case.run is not None else f"exit {case.process.returncode}"), left, "; ".join(problems)


def _judge(case: Case, job: Job, windows: set[str]) -> Iterator[str]:
    assert case.process is not None
    if job.beside is not None and case.process.poll() is None:
        time.sleep(PAUSE_S)
        case.process.send_signal(signal.SIGINT)
    if not until(lambda: case.process.poll() is not None, LONGEST_S):
        yield "the command hangs"
    live = {"queued", "running"}
    if case.run is not None and not until(lambda: live.isdisjoint(case.states().values()), BEGIN_S + LEAVING_S):
        yield f"a run never ends: {case.states()}"
    if not until(lambda: not case.processes(), LEAVING_S):
        yield f"left processes: {[' '.join(command_of(each))[-60:] for each in case.processes()]}"
    if lost := windows - case.windows():
        yield f"lost {len(lost)} windows"
    case.end()
    make_room(case)
    if case.run is not None:
        yield from _read_again(case, case.run, bool(windows))
    elif case.arrivals() and case.process.returncode != -signal.SIGKILL:  # after a day, else
        yield "left an arrival"
    if case.is_measuring():
        yield "a place in the queue is taken"
    left = [path.name for path in Path(case.environment["TMPDIR"]).iterdir() if not path.name.startswith(job.leaves)]
    if left:
        yield f"left temporary files: {sorted(left)[:3]}"


def _read_again(case: Case, run: RunFolder, has_windows: bool) -> Iterator[str]:
    next_one = RunStatus(RunState.DONE, created_s=time.time())
    RunStore(case.store).add(RunRecord("", "whatever comes next sweeps up", next_one))
    for parent, folders, files in os.walk(case.store):  # which goes on where a folder vanishes under it
        for name in (*folders, *files):
            if name in (run.scratch.name, run.reserve.name) or name.startswith(".deleted-"):
                yield f"left {Path(parent).relative_to(case.store) / name}"
    document = case.call("analyze", run.id, "--json")
    if has_windows and not document and (run.path / "plugins").is_dir():
        yield "analyze says nothing"
    if document:
        yield from find_impossible(json.loads(document))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", nargs="+", choices=[*JOBS, "files"], default=[*JOBS, "files"])
    parser.add_argument("--phases", nargs="+", help="only phases whose names hold one of these words")
    parser.add_argument("--faults", nargs="+", choices=FAULTS, default=list(FAULTS))
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        for job in options.jobs:
            for what, state, left, problem in _rows(job, options.faults, options.phases, Path(name)):
                wrong += bool(problem)
                print(f"{what:<48} {state:<10} {left:<26} {problem or 'as it should be'}", flush=True)
    return 1 if wrong else 0


def _rows(job: str, faults: list[str], words: list[str] | None, folder: Path) -> Iterator[tuple[str, str, str, str]]:
    if job == "files":
        yield from ((what, "", "", problem) for what, problem in tear(folder))
        return
    for phase in JOBS[job].phases:
        if words is None or any(word in phase for word in words):
            for fault in faults:
                if fault == "kill-supervisor" and not JOBS[job].supervisor:
                    continue
                case = Path(tempfile.mkdtemp(dir=folder))
                yield f"{job}, {phase}: {fault}", *measure(JOBS[job], phase, FAULTS[fault], case)


if __name__ == "__main__":
    sys.exit(main())
