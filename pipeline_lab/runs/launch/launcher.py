"""Start, follow and cancel runs, for the app, the command line and scripts. No TensorFlow."""

import time
from collections.abc import Iterator

from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import RunFailedError, StoreError
from pipeline_lab.folders import runtime_folder
from pipeline_lab.options.race_options import AnyRace, ScriptRaceOptions
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.pipeline.source import needs_probe, render_source
from pipeline_lab.runs.launch.launchable import check_launchable, check_script
from pipeline_lab.runs.launch.queue import runs_before
from pipeline_lab.runs.launch.runtime import module_command, start_process
from pipeline_lab.runs.launch.spare import hand_over
from pipeline_lab.runs.record import RunRecord, RunState
from pipeline_lab.runs.run_events import Event, EventReader
from pipeline_lab.runs.run_folder import RunFolder, read_record
from pipeline_lab.runs.store import RunStore

FOLLOW_S = 0.25


@dataclass(frozen=True)
class Update:
    """The state of a run at one moment.

    Attributes:
        record: Its record; a run whose supervisor vanished reads as lost.
        events: New since the last update.
        runs_before: Runs ahead of it while it is queued, else None.
    """

    record: RunRecord
    events: tuple[Event, ...]
    runs_before: int | None


def launch(store: RunStore, options: RunOptions | AnyRace) -> RunFolder:
    """Start a job or a race and return at once; it continues when the caller ends.

    Raises:
        OptionsError: A job is sure to fail; see :func:`~pipeline_lab.runs.launch.launchable.check_launchable`.
        StoreError: The store cannot be written, or no process can be started.
    """
    if isinstance(options, ScriptRaceOptions):
        check_script(options)
    else:
        for job in (options,) if isinstance(options, RunOptions) else options.arms:
            check_launchable(job)
    runtime_folder()  # fails here, before there is a run
    folder = create_run(store, options)
    if isinstance(options, ScriptRaceOptions) or not hand_over(folder.path):
        start_process(folder, module_command("pipeline_lab.runs.launch.supervisor", str(folder.path)))
    return folder


def create_run(store: RunStore, options: RunOptions | AnyRace) -> RunFolder:
    """Write the folder of a run or a race for its worker.

    Raises:
        StoreError: The store cannot be written.
    """
    if isinstance(options, RunOptions):
        return store.create(options, render_source(options), lambda folder: _write_probed(folder, options))
    if isinstance(options, ScriptRaceOptions):
        return store.create(options, options.source)
    sources = [render_source(arm) for arm in options.arms]

    def write_arms(folder: RunFolder) -> None:
        for number, (arm, source) in enumerate(zip(options.arms, sources, strict=True)):
            own = folder.arm(number)
            own.path.mkdir(parents=True)
            own.source.write_text(source, encoding="utf-8")
            _write_probed(own, arm)

    return store.create(options, sources[0], write_arms)


def _write_probed(folder: RunFolder, options: RunOptions) -> None:
    if options.profiling.sample_probe and needs_probe(options):
        folder.probed_source.write_text(render_source(options, probe=True), encoding="utf-8")


def cancel(folder: RunFolder) -> None:
    """Ask a run to stop and keep what it recorded; does nothing for a run that is over.

    Raises:
        StoreError: The run's folder cannot be written.
    """
    if not read_record(folder).status.state.is_live:
        return
    try:
        folder.cancel_flag.touch()
    except OSError as error:
        raise StoreError(f"Cannot ask run {folder.id} to stop: {error.strerror}.") from None


def follow(folder: RunFolder, interval_s: float = FOLLOW_S) -> Iterator[Update]:
    """Yield updates of a run, at once and then at each interval, until it is over."""
    reader = EventReader(folder.events)
    while True:
        record = read_record(folder)  # first, so that the events of an ended run are complete
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
