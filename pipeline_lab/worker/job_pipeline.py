"""The pipeline of a job and the files it reads: rendered from stages, or brought by a module of the user's."""

import contextlib
from collections.abc import Iterator
from typing import Any, Protocol

from pipeline_lab.errors import OwnCodeError
from pipeline_lab.runs.files import DataFile
from pipeline_lab.worker.failures import report_failure
from pipeline_lab.worker.job import Job
from pipeline_lab.worker.own_code import OwnPipeline, open_own
from pipeline_lab.worker.own_errors import errors_told, hard_exits_told
from pipeline_lab.worker.pipeline_module import import_pipeline, source_to_run
from pipeline_lab.worker.workloads.data_and_step import count_views, prepare_files
from pipeline_lab.workloads.module import ModuleWorkload


class Pipeline(Protocol):
    """What builds a job's dataset."""

    def make_dataset(self, files: list[str], cache_dir: str, /) -> Any: ...


@contextlib.contextmanager
def open_pipeline(job: Job) -> Iterator[Pipeline]:
    """Import the run's ``pipeline.py``; while the block runs, errors of a user's module are told as such.

    Raises:
        OwnCodeError: The user's module failed, inside the block or at its opening.
    """
    workload = job.options.workload
    if not isinstance(workload, ModuleWorkload):
        rendered: Any = import_pipeline(source_to_run(job.folder))
        yield rendered
        return

    def tell(error: OwnCodeError) -> None:
        report_failure(job.folder, job.log, error)

    with hard_exits_told(job.stop.request):
        own = open_own(job.folder.source, workload, tell)
        own.check_loop(job.options.training)
        try:
            with errors_told(own.home, own.maker):
                yield own
        finally:
            own.first_batch.rest()  # a job that ended waits for no batch


def find_files(job: Job, pipeline: Pipeline) -> list[DataFile]:
    """Return the files that the job reads; those of the lab's own workloads are made on first use.

    Raises:
        DataError, OwnCodeError: They are missing, damaged, or there is no room for them.
        StopRequestedError: The job was stopped meanwhile.
    """
    if isinstance(pipeline, OwnPipeline):
        return pipeline.files
    workload = job.options.workload
    assert not isinstance(workload, ModuleWorkload)
    return count_views(prepare_files(workload, job.log, job.stop), job.options.pipeline.views)
