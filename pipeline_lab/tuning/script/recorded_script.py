"""A script recorded for a while, so that there is something to say of it."""

import contextlib
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import IO

from pipeline_lab.errors import RunFailedError
from pipeline_lab.pipeline.recipe import TRAINING, read_recipe
from pipeline_lab.runs.launch.runtime import child_environment, module_command
from pipeline_lab.runs.run_folder import RunFolder, read_record
from pipeline_lab.runs.run_tables import STEPS, read_table
from pipeline_lab.runs.store import RunStore
from pipeline_lab.tuning.script.sample_process import Script

WINDOW_S, EVERY_S = 1.0, 4.0
ENDING_S = 60.0
"""Time that a script may take to end after Ctrl-C."""
SAID_BYTES = 4_000
POLL_S = 0.25
FIT_STEPS, LOOP_STEPS = 20, 50
"""Steps from which a script trains: in ``fit``, and in loops, which may also only look at some data."""


def record_script(
    script: Script,
    store: RunStore,
    seconds: float,
    should_stop: Callable[[], bool] = lambda: False,
    *,
    most_s: float = 0.0,
) -> RunFolder:
    """Watch a script to its end, or for so long; then it is interrupted as by Ctrl-C. Its step and its input are timed alone, too.

    Args:
        script: What to run; what it prints is shown if it fails.
        store: Takes the run.
        seconds: At most, once it trains.
        should_stop: Called repeatedly.
        most_s: At most, where it does not train yet.

    Raises:
        RunFailedError: It was not recorded.
    """
    known = {record.id for record in store.runs()}
    name = f"{Path(script.target).name} as it is"
    options = ["--store", str(store.root), "--quiet", f"--name={name}", f"--every={EVERY_S}", f"--seconds={WINDOW_S}"]
    options += ["--calibrate", "--even-interrupted"]
    words = [*options, *(["-m"] if script.is_module else []), script.target, *script.arguments]
    command = module_command("pipeline_lab.capture.watch_script", *words)
    with tempfile.TemporaryFile() as log:
        deadline_s = time.monotonic() + seconds

        def is_enough() -> bool:
            now_s = time.monotonic()
            is_late = now_s > deadline_s + max(0.0, most_s - seconds)
            return should_stop() or is_late or (now_s > deadline_s and _trains(_new(store, known, name)))

        code = _run(command, log, is_enough)
        log.seek(max(0, log.tell() - SAID_BYTES))
        said = log.read().decode(errors="replace").strip().rpartition("\n")[2]
    new = _new(store, known, name)
    if code and new is not None and (reason := read_record(new).status.reason):
        raise RunFailedError(f"{reason} Fix that first.")
    if code or new is None:
        reason = f"ended with exit code {code}" if code else "was not recorded"
        raise RunFailedError(f"The script {reason}{f' after “{said}”' if said else ''}; fix that first.")
    return new


def _new(store: RunStore, known: Collection[str], name: str) -> RunFolder | None:
    """Return the run of that name that was not there before."""
    found = [record.id for record in store.runs() if record.id not in known and record.name == name]
    return store.folder(found[-1]) if found else None


def _trains(folder: RunFolder | None) -> bool:
    """Say whether a script that is being recorded has come to its training."""
    recipe = None if folder is None else read_recipe(folder.recipe)
    if folder is None or recipe is None:
        return False
    steps: int = read_table(folder.steps, STEPS).num_rows
    is_fit = any(use.role == TRAINING for use in recipe.uses)
    return steps >= (FIT_STEPS if is_fit else LOOP_STEPS)


def _run(command: list[str], log: IO[bytes], is_enough: Callable[[], bool]) -> int:
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=child_environment())
    try:
        while not is_enough():
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
