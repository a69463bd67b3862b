"""The datasets of a job, all built by its one pipeline: to train, to calibrate, to evaluate."""

from dataclasses import dataclass
from typing import Any

from pipeline_lab.errors import DataError
from pipeline_lab.pipeline.source import needs_probe
from pipeline_lab.worker.job import Job
from pipeline_lab.worker.job_pipeline import Pipeline


@dataclass(frozen=True)
class JobData:
    """Builds datasets; each kind has a cache of its own.

    Attributes:
        job: The job.
        pipeline: What builds them.
        paths: All files, those that are held out for evaluations last.

    Raises:
        DataError: No file is left to train on.
    """

    job: Job
    pipeline: Pipeline
    paths: list[str]

    def __post_init__(self) -> None:
        held_out = self.job.options.training.held_out_files
        if held_out and held_out >= len(self.paths):
            raise DataError(
                f"training.held_out_files is {held_out}, but there are {len(self.paths)} files; hold out fewer, so that "
                "some are left to train on."
            )

    @property
    def first_evaluated(self) -> int:
        """Number of the first file that evaluations read, where a pipeline numbers the files that it is given."""
        return self._trained if self._holds_out and needs_probe(self.job.options) else 0

    def training(self) -> Any:
        return self._build(self.paths[: self._trained], "cache")

    def calibration(self) -> Any:
        return self._build(self.paths[: self._trained], "calibration-cache")

    def evaluation(self) -> Any:
        return self._build(self.paths[self._trained :] if self._holds_out else self.paths, "evaluation-cache")

    @property
    def _holds_out(self) -> bool:
        return self.job.options.training.held_out_files > 0

    @property
    def _trained(self) -> int:
        return len(self.paths) - self.job.options.training.held_out_files

    def _build(self, paths: list[str], cache: str) -> Any:
        return self.pipeline.make_dataset(paths, str(self.job.folder.scratch / cache))
