"""Which executor does the work."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from pipeline_lab.runs.store import RunStore
from pipeline_lab.tuning.executors.local import LocalExecutor

if TYPE_CHECKING:
    from pipeline_lab.analysis.diagnosis.fold import Spread
    from pipeline_lab.tuning.executors.ray_cluster import RayExecutor

Item = TypeVar("Item")
Result = TypeVar("Result")


def open_executor(
    ray: str | None, store: RunStore, workers: int | None = None, gpus_per_trial: int | None = None
) -> "LocalExecutor | RayExecutor":
    """Return the machines of a Ray cluster, else this one.

    Args:
        ray: Address of the cluster, if there is one.
        store: Where runs go.
        workers: Tasks at a time on this machine that do not need it to themselves; None for one on each core.
        gpus_per_trial: GPUs of a cluster's machine that a trial is given; None for whole machines.

    Raises:
        PipelineLabError: There is no such cluster, or Ray is not installed.
    """
    if ray is None:
        return LocalExecutor(store, workers)
    from pipeline_lab.tuning.executors.ray_cluster import RayExecutor  # an optional library

    return RayExecutor(store, ray, gpus_per_trial)


def spread_over(ray: str | None, store: RunStore, workers: int | None = None) -> "Spread":
    """Return who divides tasks up, for what needs no machine to itself; nobody is connected to while there are no tasks.

    Args:
        ray, store, workers: As :func:`open_executor` takes them.
    """

    def spread(task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        if not items:
            return
        executor = open_executor(ray, store, workers)
        try:
            yield from executor.spread(task, items)
        finally:
            executor.close()

    return spread
