"""Which executor a search uses."""

from pipeline_lab.options.tune import TuneOptions
from pipeline_lab.runs.store import RunStore
from pipeline_lab.tuning.executors.executor import Executor
from pipeline_lab.tuning.executors.local import LocalExecutor


def open_executor(options: TuneOptions, store: RunStore) -> Executor:
    """Return the machines of the Ray cluster that the options name, else this one.

    Raises:
        PipelineLabError: There is no such cluster, or Ray is not installed.
    """
    if options.ray is None:
        return LocalExecutor(store)
    from pipeline_lab.tuning.executors.ray_cluster import RayExecutor  # an optional library

    return RayExecutor(store, options.ray)
