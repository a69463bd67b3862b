"""Break what is under way, in each of its phases, and look what is shown and what is left.

    python -m benchmarks.faults                                    # everything, about half an hour
    python -m benchmarks.faults --jobs run watch --faults kill-worker

Each case starts a command of its own store, waits for a phase, breaks something and waits until the command has ended. Then
the run has to say what happened, hold every window that was whole before, be readable by ``analyze`` and ``runs list``, and
have left no process, no place in the queue and no temporary file. What is wrong in a case stands in its last column.
"""

import argparse
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import psutil

from benchmarks.impossible import find_impossible
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.run_tables import RUN_TABLES

TOP = Path(__file__).resolve().parents[2]
SCRIPT = TOP / "tests" / "data" / "scripts" / "own_loop.py"
SAMPLE = TOP / "profiles" / "samples" / "sample-baseline"
LONGEST_S, LEAVING_S, PAUSE_S = 120.0, 20.0, 3.0
COMMAND = (sys.executable, "-m", "pipeline_lab")
TRAINING = ("--set", "profiling.steps_per_window=3", "--set", "profiling.every_steps=30")
Holds = Callable[["Case"], bool]


@dataclass
class Case:
    """One command in a place of its own.

    Attributes:
        folder: Its store, its queue, its temporary files.
        process: The command, once it is started.
        outputs: What commands printed afterwards.
    """

    folder: Path
    process: "subprocess.Popen[str] | None" = None
    outputs: list[str] = field(default_factory=list)

    @cached_property
    def store(self) -> Path:
        return self.folder / "store"

    @cached_property
    def environment(self) -> dict[str, str]:
        own = {
            name: str(self.folder / name.lower()) for name in ("PIPELINE_LAB_RUNTIME", "PIPELINE_LAB_CACHE", "TMPDIR")
        }
        (self.folder / "tmpdir").mkdir(exist_ok=True)
        return {**os.environ, **own, "PIPELINE_LAB_STORE": str(self.store)}

    @property
    def run(self) -> RunFolder | None:
        """The newest run that the command made."""
        made = sorted(self.store.glob("[0-9]*"), key=lambda path: path.name)
        return RunFolder(made[0]) if made else None

    def events(self) -> str:
        with suppress(OSError):
            if self.run is not None:
                return self.run.events.read_text(encoding="utf-8", errors="replace")
        return ""

    def windows(self) -> set[str]:
        return (
            set() if self.run is None else {path.name for path in self.run.windows() if any(path.glob("*.xplane.pb"))}
        )

    def state(self) -> str:
        """Return the state that lists show, or why there is none."""
        listed = self.call("runs", "list", "--json")
        runs = [each for each in json.loads(listed or "[]") if not each["id"].startswith("sample")]
        return str(runs[-1]["state"]) if runs else "no run"

    def call(self, *arguments: str) -> str:
        ended = subprocess.run(
            [*COMMAND, *arguments], env=self.environment, cwd=self.folder, capture_output=True, text=True, check=False
        )
        self.outputs += [ended.stdout[-2000:], ended.stderr[-2000:]]
        return ended.stdout

    def processes(self, what: str = "") -> list[psutil.Process]:
        """Return the processes of this case whose command line names something."""
        return [each for each in psutil.process_iter() if self._is_ours(each) and what in " ".join(_command_of(each))]

    def _is_ours(self, process: psutil.Process) -> bool:
        with suppress(psutil.Error):
            same = process.environ().get("PIPELINE_LAB_RUNTIME") == self.environment["PIPELINE_LAB_RUNTIME"]
            return same and process.status() != psutil.STATUS_ZOMBIE
        return False

    def signal(self, what: str, number: int) -> bool:
        """Send a signal to the processes whose command line names something; say whether there was any."""
        found = self.processes(what)
        for each in found:
            with suppress(psutil.Error):
                each.send_signal(number)
        return bool(found)


def _command_of(process: psutil.Process) -> list[str]:
    with suppress(psutil.Error):
        return process.cmdline()
    return []


def begun(phase: str) -> Holds:
    return lambda case: f'"{phase}"' in case.events()


def recorded(windows: int) -> Holds:
    return lambda case: len(case.windows()) >= windows


def since(seconds: float) -> Holds:
    started = time.monotonic()
    return lambda _: time.monotonic() - started >= seconds


@dataclass(frozen=True)
class Job:
    """A command and its phases.

    Attributes:
        arguments: Of ``pipeline-lab``.
        worker: What the command line of the process that does the work names.
        phases: Each with what tells that it has begun.
    """

    arguments: tuple[str, ...]
    worker: str
    phases: Mapping[str, Callable[[], Holds]]


def _after(what: Holds) -> Callable[[], Holds]:
    return lambda: what


JOBS = {
    "run": Job(
        ("run", "--preset", "synthetic", "--steps", "300", *TRAINING),
        "pipeline_lab.worker",
        {
            "starting": _after(lambda case: case.run is not None),
            "importing": _after(begun("importing")),
            "training": _after(begun("training")),
            "after 2 windows": _after(recorded(2)),
        },
    ),
    "watch": Job(
        ("watch", "--every", "2", "--seconds", "0.3", str(SCRIPT), "2000", "4"),
        "own_loop",
        {
            "starting": _after(lambda case: case.run is not None),
            "after 2 windows": _after(recorded(2)),
        },
    ),
    "race": Job(
        ("race", "synthetic", "synthetic", "--pairs", "6"),
        "pipeline_lab.worker",
        {"starting": _after(lambda case: case.run is not None), "racing": _after(begun("racing"))},
    ),
    "tune": Job(
        ("tune", "--preset", "synthetic", "--budget", "60s", "--try", "prefetch=2,8"),
        "pipeline_lab.worker",
        {"measuring the start": _after(lambda case: bool(case.processes("pipeline_lab.worker")))},
    ),
    "report": Job(
        ("report", str(SAMPLE), "--output", "report.html"),
        "pipeline_lab report",
        {"starting": lambda: since(0.3), "writing": lambda: since(1.5)},
    ),
}


def no_room(case: Case, job: Job) -> bool:
    """Let no file of the worker grow any more, as on a full disk."""
    found = case.processes(job.worker)
    for each in found:
        with suppress(psutil.Error):
            each.rlimit(resource.RLIMIT_FSIZE, (0, 0))
    return bool(found)


def pause(case: Case, job: Job) -> bool:
    found = case.signal(job.worker, signal.SIGSTOP)
    time.sleep(PAUSE_S)
    return case.signal(job.worker, signal.SIGCONT) and found


def of_command(number: int) -> "Fault":
    def send(case: Case, _: Job) -> bool:
        assert case.process is not None
        if case.process.poll() is None:
            case.process.send_signal(number)
            return True
        return False

    return send


def store_gone(case: Case, _: Job) -> bool:
    """Take the store away, as a disk that is pulled out."""
    case.store.rename(case.folder / "gone")
    time.sleep(PAUSE_S)
    shutil.rmtree(case.store, ignore_errors=True)
    (case.folder / "gone").rename(case.store)
    return True


Fault = Callable[[Case, Job], bool]
FAULTS: dict[str, Fault] = {
    "kill-worker": lambda case, job: case.signal(job.worker, signal.SIGKILL),
    "term-worker": lambda case, job: case.signal(job.worker, signal.SIGTERM),
    "stop-worker": pause,
    "no-room": no_room,
    "kill-supervisor": lambda case, _: case.signal("launch.supervisor", signal.SIGKILL),
    "kill-command": of_command(signal.SIGKILL),
    "term-command": of_command(signal.SIGTERM),
    "interrupt": of_command(signal.SIGINT),
    "store-gone": store_gone,
}
"""Each does its harm and says whether there was anything to harm."""


def measure(job: Job, phase: str, fault: Fault, folder: Path) -> tuple[str, str, str]:
    """Return the state that is shown, what is left, and what is wrong."""
    case = Case(folder)
    with (folder / "output").open("w") as output:
        case.process = subprocess.Popen(
            [*COMMAND, *job.arguments], env=case.environment, cwd=folder, stdout=output, stderr=output, text=True
        )
        has_begun = job.phases[phase]()
        if not _until(lambda: has_begun(case) or case.process.poll() is not None, LONGEST_S):
            _end(case)
            return "–", "–", "the phase never began"
        windows = case.windows()
        if not fault(case, job):
            _end(case)
            return "–", "–", "nothing there to harm"
        problems = list(_judge(case, windows))
    output_text = (folder / "output").read_text(encoding="utf-8", errors="replace") + "".join(case.outputs)
    problems += ["a traceback"] if "Traceback (most recent" in output_text else []
    left = f"{len(case.windows())} windows (before {len(windows)})"
    return (case.state() if case.run is not None else f"exit {case.process.returncode}"), left, "; ".join(problems)


def _judge(case: Case, windows: set[str]) -> Iterator[str]:
    assert case.process is not None
    if not _until(lambda: case.process.poll() is not None, LONGEST_S):
        yield "the command hangs"
    live = ("queued", "running")
    if case.run is not None and not _until(lambda: case.state() not in live, LONGEST_S):
        yield "the run never ends"
    if not _until(lambda: not case.processes(), LEAVING_S):
        yield f"left processes: {[' '.join(_command_of(each))[-60:] for each in case.processes()]}"
    if lost := windows - case.windows():
        yield f"lost {len(lost)} windows"
    _end(case)
    if case.run is not None:
        yield from _read_again(case, case.run, bool(windows))
    if list((Path(case.environment["PIPELINE_LAB_RUNTIME"]) / "queue").glob("[0-9]*-*")):
        yield "a place in the queue is taken"
    if left := sorted(path.name for path in Path(case.environment["TMPDIR"]).iterdir()):
        yield f"left temporary files: {left[:3]}"


def _read_again(case: Case, run: RunFolder, has_windows: bool) -> Iterator[str]:
    case.call("presets")  # whatever comes next sweeps up
    for name in (".scratch", ".reserve"):
        if (run.path / name).exists():
            yield f"left {name}"
    document = case.call("analyze", run.id, "--json")
    if has_windows and not document:
        yield "analyze says nothing"
    if document:
        yield from find_impossible(json.loads(document))


def _end(case: Case) -> None:
    for each in case.processes():
        with suppress(psutil.Error):
            each.kill()
    if case.process is not None:
        with suppress(subprocess.TimeoutExpired):
            case.process.wait(5)


def _until(holds: Callable[[], bool], seconds: float) -> bool:
    deadline_s = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline_s:
            return False
        time.sleep(0.05)
    return True


def tear(folder: Path) -> Iterator[tuple[str, str]]:
    """Cut each file of a finished run to its half and to nothing; yield which, and what is wrong with what is said then."""
    names = ["run.json", "files.json", "events.jsonl", *[table.file_name for table in RUN_TABLES]]
    for name in [*names, "window"]:
        for share in (0.5, 0.0):
            case = Case(Path(tempfile.mkdtemp(dir=folder)))
            copied = Path(shutil.copytree(SAMPLE, case.store / "20260101-000000-torn-0000"))
            shutil.rmtree(copied / "analysis")
            torn = next(copied.rglob("*.xplane.pb*"), None) if name == "window" else copied / name
            if torn is None or not torn.is_file():
                continue
            torn.write_bytes(torn.read_bytes()[: int(torn.stat().st_size * share)])
            whole = json.loads(case.call("analyze", str(copied), "--json") or "{}")
            case.call("runs", "list")
            problems = list(find_impossible(whole))
            problems += ["a traceback"] if any("Traceback (most recent" in text for text in case.outputs) else []
            said = (
                [whole["source"]["damaged_tables"], whole["source"]["salvaged"], whole["source"]["unreadable"]]
                if whole
                else []
            )
            problems += ["nothing is said of it"] if whole and not any(said) and share else []
            yield f"{name} cut to {share:.0%}", "; ".join(problems)


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
                case = Path(tempfile.mkdtemp(dir=folder))
                yield f"{job}, {phase}: {fault}", *measure(JOBS[job], phase, FAULTS[fault], case)


if __name__ == "__main__":
    sys.exit(main())
