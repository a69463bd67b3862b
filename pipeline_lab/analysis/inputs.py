"""What a run's diagnosis is made from, told by file names alone: cheap to import and to ask."""

from collections.abc import Callable
from pathlib import Path

from pipeline_lab.runs.store import RunFolder

Progress = Callable[[int, int, str], None]
"""Told how many traces are done, how many there are, and the next one's name."""


def is_run(path: Path) -> bool:
    """Say whether the folder is a run of ours."""
    return RunFolder(path).record.is_file()


def window_files(folder: RunFolder) -> list[Path]:
    """Return the trace files of a run, oldest window first."""
    return [path for window in folder.windows() for path in sorted(window.glob("*.xplane.pb"))]
