"""A script recorded for a while, so that there is something to say of it."""

import contextlib
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from pipeline_lab.errors import RunFailedError
from pipeline_lab.runs.launch.runtime import child_environment, module_command
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.store import RunStore
from pipeline_lab.tuning.proof import Script

WINDOW_S, EVERY_S = 1.0, 4.0
ENDING_S = 60.0
"""Time that a script may take to end after Ctrl-C."""
SAID_BYTES = 4_000
POLL_S = 0.25


def record_script(
    script: Script, store: RunStore, seconds: float, should_stop: Callable[[], bool] = lambda: False
) -> RunFolder:
    """Watch a script to its end, or for so long; then it is interrupted as by Ctrl-C.

    Args:
        script: What to run; what it prints is shown if it fails.
        store: Takes the run.
        seconds: At most.
        should_stop: Called repeatedly.

    Raises:
        RunFailedError: It was not recorded.
    """
    known = {record.id for record in store.runs()}
    name = f"fix {Path(script.target).name}"
    options = ["--store", str(store.root), "--quiet", f"--name={name}", f"--every={EVERY_S}", f"--seconds={WINDOW_S}"]
    words = [*options, *(["-m"] if script.is_module else []), script.target, *script.arguments]
    command = module_command("pipeline_lab.capture.watch_script", *words)
    with tempfile.TemporaryFile() as log:
        code = _run(command, log, seconds, should_stop)
        log.seek(max(0, log.tell() - SAID_BYTES))
        said = log.read().decode(errors="replace").strip().rpartition("\n")[2]
    new = [record for record in store.runs() if record.id not in known and record.name == name]
    if code or not new:
        reason = f"ended with exit code {code}" if code else "was not recorded"
        raise RunFailedError(f"The script {reason}{f' after “{said}”' if said else ''}; mend that first.")
    return store.folder(new[-1].id)


def _run(command: list[str], log: IO[bytes], seconds: float, should_stop: Callable[[], bool]) -> int:
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=child_environment())
    deadline_s = time.monotonic() + seconds
    try:
        while time.monotonic() < deadline_s and not should_stop():
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(POLL_S)
        _end(process)
        return 0
    except KeyboardInterrupt:
        _end(process)
        raise


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.send_signal(signal.SIGINT)
    try:
        process.wait(ENDING_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
