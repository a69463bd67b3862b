"""Follow a run in progress: fold each window as it lands, and keep the saved diagnosis up to date until the run ends."""

import contextlib
import os
import time
from collections.abc import Callable
from functools import partial

from pipeline_lab.analysis.diagnosis.diagnose import RunFold
from pipeline_lab.analysis.diagnosis.inputs import WindowList
from pipeline_lab.analysis.diagnosis.saved import SavedDiagnosis, fingerprint_inputs
from pipeline_lab.analysis.timeline.build import build_index
from pipeline_lab.runs.run_folder import RunFolder, read_record

LOOK_EVERY_S = 0.5
SAVE_EVERY_S = 3.0
"""Between windows only the job's own tables grow; they are taken along this often."""
REST = 9
"""It rests n times as long as the processor was busy with the last diagnosis, which takes longer the longer the job is."""
GROWTH = 2
"""The timeline of a working run is rebuilt once there are n times as many captures, so that none is read often."""


def follow(folder: RunFolder, saved: SavedDiagnosis, sleep: Callable[[float], None] = time.sleep) -> None:
    """Keep the saved diagnosis of a run up to date until the run is over, and a timeline of most of its windows.

    Args:
        folder: The run.
        saved: Where its diagnosis is kept; the caller holds its lock.
        sleep: Waits for n seconds.

    Raises:
        StoreError: The run's record cannot be read.
        OSError: The diagnosis cannot be saved.
    """
    fold, windows = RunFold(folder), WindowList(folder)
    seen, saved_s, took_s, drawn, is_pending = "", 0.0, 0.0, 0, False
    while True:
        is_live = read_record(folder).status.state.is_live  # before the inputs, so that the last ones are not missed
        listed = windows.look(everywhere=not is_live)
        inputs = fingerprint_inputs(folder.path, windows)  # before they are read: a window may land meanwhile
        has_new = fold.add_new(saved.save_progress, listed=listed)
        is_pending |= has_new
        is_due = time.monotonic() - saved_s >= max(0.0 if is_pending else SAVE_EVERY_S, REST * took_s)
        if (is_pending or inputs != seen) and (is_due or not is_live):
            begun_s = time.process_time()
            diagnosis = fold.diagnose()
            saved.save(diagnosis, inputs)
            seen, saved_s, is_pending = inputs, time.monotonic(), False
            took_s = time.process_time() - begun_s
            if is_live and fold.captures and fold.captures >= GROWTH * drawn:
                saved.save_timeline(partial(build_index, folder.path, diagnosis), inputs)
                drawn = fold.captures
        if has_new:
            saved.end_progress()
        if not is_live and not fold.missing():
            return
        sleep(LOOK_EVERY_S)


def yield_to_training() -> None:
    """Give this process the lowest priority: it runs only when the job leaves the processor free."""
    with contextlib.suppress(OSError):
        os.nice(19)
    with contextlib.suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
