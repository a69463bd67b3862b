"""One job from a script: launch it, wait for its end, hold the folder that it left."""

from dataclasses import dataclass
from pathlib import Path

from pipeline_lab.display import Displayed
from pipeline_lab.errors import RunFailedError
from pipeline_lab.options.run import RunOptions
from pipeline_lab.runs.launcher import cancel, launch, wait
from pipeline_lab.runs.record import RunRecord, RunState
from pipeline_lab.runs.store import RunFolder, RunStore, open_store


@dataclass(frozen=True)
class Run(Displayed):
    """A run that is over: done, or cancelled with what it had recorded; a notebook shows its verdict and numbers.

    Attributes:
        folder: Names of everything that it left.
        record: Its ``run.json``.
    """

    folder: RunFolder
    record: RunRecord

    @property
    def id(self) -> str:
        return self.folder.id

    @property
    def path(self) -> Path:
        """What ``pipeline_lab.analyze`` takes."""
        return self.folder.path


def run(options: RunOptions, store: RunStore | None = None) -> Run:
    """Run one job to its end, in a process of its own; an interrupt cancels it.

    Args:
        options: What to run; see ``pipeline_lab.options.presets.find_preset`` for a start.
        store: Where to keep it; None for the store that the command line uses too.

    Raises:
        RunFailedError: The job failed; the text says why, and the run is kept.
        StoreError: The store cannot be written.
    """
    folder = launch(store or open_store(), options)
    try:
        record = wait(folder)
    except KeyboardInterrupt:
        cancel(folder)
        raise
    if record.status.state in (RunState.FAILED, RunState.LOST):
        raise RunFailedError(f"Run {folder.id} failed: {record.status.reason}")
    return Run(folder, record)
