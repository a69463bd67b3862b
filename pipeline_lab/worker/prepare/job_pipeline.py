"""The pipeline of a job, rendered from stages or from the user's module; its files and its datasets."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from pipeline_lab.errors import DataError, UserCodeError
from pipeline_lab.pipeline.source import needs_probe
from pipeline_lab.runs.run_documents import DataFile
from pipeline_lab.worker.job import Job
from pipeline_lab.worker.note.failures import report_failure
from pipeline_lab.worker.prepare.user_code import UserPipeline, import_pipeline, open_user_code, source_to_run
from pipeline_lab.worker.prepare.user_errors import explaining_errors, explaining_hard_exits
from pipeline_lab.worker.workloads.data_and_step import count_views, prepare_files
from pipeline_lab.workloads.module import ModuleWorkload


class Pipeline(Protocol):
    """Builds a job's datasets."""

    def make_dataset(self, files: list[str], cache_dir: str, /) -> Any: ...


@contextlib.contextmanager
def open_pipeline(job: Job) -> Iterator[Pipeline]:
    """Import the run's ``pipeline.py``; while the block runs, errors of a user's module are explained as such.

    Raises:
        UserCodeError: The user's module failed, inside the block or at its opening.
    """
    workload = job.options.workload
    if not isinstance(workload, ModuleWorkload):
        rendered: Any = import_pipeline(source_to_run(job.folder))
        yield rendered
        return

    def tell(error: UserCodeError) -> None:
        report_failure(job.folder, job.log, error)

    with explaining_hard_exits(job.stop.request):
        own = open_user_code(job.folder.source, workload, tell)
        own.check_loop(job.options.training)
        try:
            with explaining_errors(own.home, own.maker):
                yield own
        finally:
            own.first_batch.rest()  # the job has ended


def find_files(job: Job, pipeline: Pipeline) -> list[DataFile]:
    """Return the files that the job reads; those of generated workloads are created on first use.

    Raises:
        DataError, UserCodeError: They are missing or damaged, or do not fit on disk.
        StopRequestedError: The job was stopped meanwhile.
    """
    if isinstance(pipeline, UserPipeline):
        return pipeline.files
    workload = job.options.workload
    assert not isinstance(workload, ModuleWorkload)
    return count_views(prepare_files(workload, job.log, job.stop), job.options.pipeline.views)


@dataclass(frozen=True)
class JobData:
    """Builds the datasets for training, calibration and evaluation, each with a separate cache.

    Attributes:
        job: The job.
        pipeline: Builds them.
        paths: All files, held-out files last.

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
        """Index of the first evaluated file, where a pipeline numbers its files."""
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
