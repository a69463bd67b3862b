"""Trials on this machine, one after the other, through the same queue as every other run.

What fits into a function call, such as reading a trace, is spread over processes instead.
"""

import platform
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from pipeline_lab.analysis.diagnosis.executors import TraceExecutor
from pipeline_lab.analysis.diagnosis.processes import spread_over_processes
from pipeline_lab.errors import OptionsError, StoreError
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.runs.launch.launcher import cancel, launch
from pipeline_lab.runs.machine.limits import core_numbers
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.run_folder import RunFolder, read_record
from pipeline_lab.runs.store import RunStore
from pipeline_lab.tuning.executors.executor import (
    Finished,
    ScriptFiles,
    SearchStoppedError,
    Trial,
    Watch,
    check_machines,
    describe_machine,
    failure_of,
    took_s,
)

if TYPE_CHECKING:
    from pipeline_lab.tuning.executors.ray_cluster import RayExecutor


Item = TypeVar("Item")
Result = TypeVar("Result")


POLL_S = 0.25


class LocalExecutor:
    """Launches each trial as a run of the store; a run goes on when the search is killed."""

    machines = 1

    def __init__(self, store: RunStore, workers: int | None = None) -> None:
        """Take this machine.

        Args:
            store: Where runs go.
            workers: Tasks at a time that need no machine to themselves; None for one on each core.
        """
        self._store, self._workers = store, workers or len(core_numbers())

    def check(self, needed: RunOptions | ScriptFiles) -> None:
        """Make sure that the data are there.

        Raises:
            DataError: They are not.
        """
        here = describe_machine(needed)
        check_machines(here, (here,))

    def run(self, trials: Sequence[Trial], watch: Watch) -> None:
        """Bring trials to their end, one after the other; see :class:`Executor`."""
        for trial in trials:
            folder = self._find(trial.begun_as)
            if folder is None:
                try:
                    folder = launch(self._store, trial.options)
                except OptionsError as error:  # it does not fit into this machine, for one
                    watch.ended(trial, Finished("", platform.node(), 0.0, str(error)))
                    continue
                watch.begun(trial, folder.id)
            watch.ended(trial, _finish(folder, watch.should_stop))

    def spread(self, task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        """Do a task for every item, some on each core at a time; those lost with their process are repeated.

        Raises:
            RunFailedError: One was lost again and again.
        """
        return spread_over_processes(task, items, self._workers)

    def close(self) -> None:
        """Nothing is held."""

    def _find(self, run_id: str | None) -> RunFolder | None:
        """Return the run that an earlier process began if it still goes, or came to its end by itself."""
        if run_id is None:
            return None
        try:
            folder = self._store.folder(run_id)
            state = read_record(folder).status.state
        except StoreError:
            return None
        return None if state in (RunState.LOST, RunState.CANCELLED) else folder


def _finish(folder: RunFolder, should_stop: Callable[[], bool]) -> Finished:
    while (record := read_record(folder)).status.state.is_live:
        if should_stop():
            cancel(folder)
            raise SearchStoppedError("The search was asked to stop; what it found so far is kept.")
        time.sleep(POLL_S)
    return Finished(folder.id, platform.node(), took_s(record), failure_of(record))


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


def spread_over(ray: str | None, store: RunStore, workers: int | None = None) -> TraceExecutor:
    """Return a function that distributes tasks that need no machine to themselves; it connects only if there are tasks.

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
