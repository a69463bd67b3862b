"""Start, follow and cancel runs: the one way into a job, for the app, the command line and scripts. No TensorFlow."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline_lab.errors import RunFailedError, StoreError
from pipeline_lab.options.run import RunOptions
from pipeline_lab.pipeline.source import needs_probe, render_source
from pipeline_lab.runs.events import Event, EventReader
from pipeline_lab.runs.launchable import check_launchable
from pipeline_lab.runs.queue import runs_before
from pipeline_lab.runs.record import RunRecord, RunState
from pipeline_lab.runs.runtime import module_command, runtime_folder, start_detached
from pipeline_lab.runs.spare import ensure_spare, hand_over
from pipeline_lab.runs.store import RunFolder, RunStore, read_record

if TYPE_CHECKING:
    from pipeline_lab.options.race import RaceOptions

__all__ = ["Update", "cancel", "ensure_spare", "follow", "launch", "launch_race", "position", "wait", "wait_for_end"]

FOLLOW_S = 0.25


@dataclass(frozen=True)
class Update:
    """What there is to know about a run at one moment.

    Attributes:
        record: Its record; a run whose supervisor vanished reads as lost.
        events: What the worker wrote since the update before.
        runs_before: Runs that come first while it is queued, else None.
    """

    record: RunRecord
    events: tuple[Event, ...]
    runs_before: int | None


def launch(store: RunStore, options: RunOptions) -> RunFolder:
    """Start a job and return at once; it goes on when the caller ends.

    Raises:
        OptionsError: The job is bound to fail; see :func:`~pipeline_lab.runs.launchable.check_launchable`.
        StoreError: The store cannot be written, or no process can be started.
    """
    check_launchable(options)
    runtime_folder()  # its trouble is the caller's to see, before there is a run
    return _start(create_run(store, options))


def launch_race(store: RunStore, options: "RaceOptions") -> RunFolder:
    """Start a race and return at once; it goes on when the caller ends.

    Raises:
        OptionsError: An arm is bound to fail.
        StoreError: The store cannot be written, or no process can be started.
    """
    for arm in options.arms:
        check_launchable(arm)
    runtime_folder()
    return _start(create_race(store, options))


def create_run(store: RunStore, options: RunOptions) -> RunFolder:
    """Write the folder of a run as its worker finds it.

    Raises:
        StoreError: The store cannot be written.
    """
    folder = store.create(options, render_source(options))
    _write_sources(folder, options)
    return folder


def create_race(store: RunStore, options: "RaceOptions") -> RunFolder:
    """Write the folder of a race as its worker finds it.

    Raises:
        StoreError: The store cannot be written.
    """
    folder = store.create(options, render_source(options.arms[0]))
    for number, arm in enumerate(options.arms):
        _write_sources(folder.arm(number), arm)
    return folder


def _start(folder: RunFolder) -> RunFolder:
    """Hand the folder to a worker."""
    try:
        if not hand_over(folder.path):
            with folder.log.open("ab") as log:
                start_detached(module_command("pipeline_lab.runs.supervisor", str(folder.path)), log)
    except OSError as error:
        raise StoreError(f"Cannot start the run {folder.id}: {error.strerror}.") from None
    return folder


def _write_sources(folder: RunFolder, options: RunOptions) -> None:
    try:
        folder.path.mkdir(parents=True, exist_ok=True)
        folder.source.write_text(render_source(options), encoding="utf-8")
        if options.profiling.sample_probe and needs_probe(options):
            folder.probed_source.write_text(render_source(options, probe=True), encoding="utf-8")
    except OSError as error:
        raise StoreError(f"Cannot write the run {folder.id}: {error.strerror}.") from None


def cancel(folder: RunFolder) -> None:
    """Ask a run to end; it keeps what it recorded. Does nothing for a run that is over.

    Raises:
        StoreError: The run's folder cannot be written.
    """
    if not read_record(folder).status.state.is_live:
        return
    try:
        folder.cancel_flag.touch()
    except OSError as error:
        raise StoreError(f"Cannot ask run {folder.id} to stop: {error.strerror}.") from None


def position(folder: RunFolder) -> int | None:
    """Return how many runs come before a queued one; None if it is not queued."""
    return runs_before(folder.id)


def follow(folder: RunFolder, interval_s: float = FOLLOW_S) -> Iterator[Update]:
    """Yield what happens to a run, at once and then at each interval; the last update holds its end."""
    reader = EventReader(folder.events)
    while True:
        record = read_record(folder)  # before the events, so that those of an ended run are complete
        waits = record.status.state is RunState.QUEUED
        yield Update(record, tuple(reader.read()), runs_before(folder.id) if waits else None)
        if not record.status.state.is_live:
            return
        time.sleep(interval_s)


def wait(folder: RunFolder) -> RunRecord:
    """Wait until a run is over and return its record."""
    record = read_record(folder)
    for update in follow(folder):
        record = update.record
    return record


def wait_for_end(folder: RunFolder, what: str) -> RunRecord:
    """Wait until a run is done and return its record; an interrupt cancels it.

    Args:
        folder: Of the run.
        what: What an error calls it, such as ``Race``.

    Raises:
        RunFailedError: It failed or was lost; the text says why.
    """
    try:
        record = wait(folder)
    except KeyboardInterrupt:
        cancel(folder)
        raise
    if record.status.state in (RunState.FAILED, RunState.LOST):
        raise RunFailedError(f"{what} {folder.id} failed: {record.status.reason}")
    return record
