"""One job that a script ran to its end, and the folder that it left."""

from dataclasses import dataclass
from pathlib import Path

from pipeline_lab.display import Displayed
from pipeline_lab.runs.record import RunRecord
from pipeline_lab.runs.store import RunFolder


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
