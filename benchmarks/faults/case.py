"""One command in a place of its own, and what can be asked of it from outside."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import psutil

from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.store import RunStore
from tests.support.ports import free_port

SAMPLE = Path(__file__).resolve().parents[2] / "profiles" / "samples" / "sample-baseline"
COMMAND = (sys.executable, "-m", "pipeline_lab")


@dataclass
class Case:
    """One command in a place of its own.

    Attributes:
        folder: Its store, its queue, its temporary files.
        process: The command, once it is started.
        outputs: What commands printed afterwards.
        port: Where it serves, if it is a server.
    """

    folder: Path
    process: "subprocess.Popen[str] | None" = None
    outputs: list[str] = field(default_factory=list)
    port: int = field(default_factory=free_port)

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
        """The first run that the command made: a search's own, before those of its trials."""
        made = sorted(self.store.glob("[0-9]*"), key=lambda path: path.name)
        return RunFolder(made[0]) if made else None

    def events(self) -> str:
        with suppress(OSError):
            if self.run is not None:
                return self.run.events.read_text(encoding="utf-8", errors="replace")
        return ""

    def windows(self) -> set[str]:
        """Return the windows of all runs, by their paths in the store."""
        return {str(path.parent.relative_to(self.store)) for path in self.store.glob("[0-9]*/**/window-*/*.xplane.pb")}

    def arrivals(self) -> list[Path]:
        return list(RunStore(self.store).arrivals.glob("*/*"))

    def state(self) -> str:
        """Return the state that lists show, or why there is none."""
        return "no run" if self.run is None else self.states().get(self.run.id, "no run")

    def states(self) -> dict[str, str]:
        """Return the states that lists show of all runs, those that a run has begun among them, by their ids."""
        return {each["id"]: each["state"] for each in json.loads(self.call("runs", "list", "--json") or "[]")}

    def is_measuring(self) -> bool:
        """Say whether a place in the queue is held; one whose owner is gone goes when somebody looks."""
        look = "from pipeline_lab.runs.launch.queue import is_measuring; raise SystemExit(is_measuring())"
        return subprocess.run([sys.executable, "-c", look], env=self.environment, check=False).returncode != 0

    def call(self, *arguments: str) -> str:
        ended = subprocess.run(
            [*COMMAND, *arguments], env=self.environment, cwd=self.folder, capture_output=True, text=True, check=False
        )
        self.outputs += [ended.stdout[-2000:], ended.stderr[-2000:]]
        return ended.stdout

    def processes(self, what: str = "") -> list[psutil.Process]:
        """Return the processes of this case whose command line names something."""
        return [each for each in psutil.process_iter() if self._is_ours(each) and what in " ".join(command_of(each))]

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

    def end(self) -> None:
        """Kill whatever is left of it."""
        for each in self.processes():
            with suppress(psutil.Error):
                each.kill()
        if self.process is not None:
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(5)


def command_of(process: psutil.Process) -> list[str]:
    with suppress(psutil.Error):
        return process.cmdline()
    return []


def until(holds: Callable[[], bool], seconds: float) -> bool:
    """Wait until something holds; say whether it does."""
    deadline_s = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline_s:
            return False
        time.sleep(0.05)
    return True
