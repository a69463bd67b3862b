"""The commands that are broken, and what tells that each of their phases has begun."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.faults.case import SAMPLE, Case
from benchmarks.faults.sender import send_slowly

SCRIPT = Path(__file__).resolve().parents[2] / "tests" / "data" / "scripts" / "own_loop.py"
TRAINING = ("--set", "profiling.steps_per_window=3", "--set", "profiling.every_steps=30")
Holds = Callable[[Case], bool]


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
        supervisor: What that of the process names that brings the run to its end; empty if there is none of its own.
        beside: What goes on beside a command that serves; such a command is ended with Ctrl-C afterwards.
        leaves: Beginnings of names that TensorFlow leaves in the temporary folder for the user's own program.
        raises: Exceptions of that program, whose traceback is shown as Python shows it.
    """

    arguments: tuple[str, ...]
    worker: str
    phases: Mapping[str, Callable[[], Holds]]
    supervisor: str = "launch.supervisor"
    beside: Callable[[int], object] | None = None
    leaves: tuple[str, ...] = ()
    raises: tuple[str, ...] = ()


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
        supervisor="",
        leaves=("__autograph_generated_file", "__pycache__"),
        raises=("KeyboardInterrupt",),
    ),
    "race": Job(
        ("race", "synthetic", "synthetic", "--pairs", "6"),
        "pipeline_lab.worker",
        {
            "starting": _after(lambda case: case.run is not None),
            "racing": _after(begun("racing")),
            "after a round": _after(lambda case: '"kind": "race"' in case.events()),
            "recording": _after(begun("recording")),
        },
    ),
    "tune": Job(
        ("tune", "--preset", "synthetic", "--budget", "60s", "--configurations", "2"),
        "pipeline_lab.worker",
        {
            "starting": _after(lambda case: case.run is not None),
            "measuring the start": _after(lambda case: bool(case.processes("pipeline_lab.worker"))),
            "trying": _after(lambda case: len(list(case.store.glob("[0-9]*"))) > 2),
        },
        supervisor="pipeline_lab.tuning",
    ),
    "upload": Job(
        ("app", "--no-browser", "--port", "{port}"),
        "pipeline_lab app",
        {"starting": lambda: since(0.5), "receiving": _after(lambda case: bool(case.arrivals()))},
        supervisor="",
        beside=send_slowly,
    ),
    "report": Job(
        ("report", str(SAMPLE), "--output", "report.html"),
        "pipeline_lab report",
        {"starting": lambda: since(0.3), "writing": lambda: since(0.6)},
        supervisor="",
    ),
}
