"""Trials on the machines of a Ray cluster: one on each at a time, or one on each share of a machine's GPUs.

Each trial goes to a named machine that is free, or has a share that is; of its GPUs Ray chooses which, and lets the trial
see no other (``CUDA_VISIBLE_DEVICES``). A trial whose machine or process is lost goes to another one.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

from pipeline_lab.analysis.diagnosis.processes import LOST, MOST_ATTEMPTS
from pipeline_lab.errors import OptionsError, RunFailedError
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.runs.store import RunStore
from pipeline_lab.tuning.executors import ray_trial
from pipeline_lab.tuning.executors.executor import (
    Finished,
    ScriptFiles,
    SearchStoppedError,
    Trial,
    Watch,
    check_machines,
    describe_machine,
)
from pipeline_lab.tuning.executors.ray_trial import Node, Slot, find_slots

Item = TypeVar("Item")
Result = TypeVar("Result")

POLL_S = 0.5
NO_MACHINE_S = 120.0
"""A cluster without a machine for this long counts as lost."""
LOOK_S = 120.0


class RayExecutor:
    """Measures on every machine of a cluster that has processors to give."""

    def __init__(self, store: RunStore, address: str, gpus_per_trial: int | None = None) -> None:
        """Connect.

        Args:
            store: Where runs go.
            address: Of the cluster.
            gpus_per_trial: GPUs that a trial is given; None for whole machines.

        Raises:
            OptionsError: Ray is not installed, or there is no cluster at that address.
        """
        try:
            import ray
        except ImportError:
            raise OptionsError("Trials on a cluster need Ray: pip install 'ray>=2.40'.") from None
        self._ray, self._store, self._gpus_per_trial = ray, store, gpus_per_trial
        try:
            ray.init(address=address, log_to_driver=False, logging_level="error", ignore_reinit_error=True)
        except (ConnectionError, ValueError, RuntimeError, TimeoutError) as error:
            raise OptionsError(f"There is no Ray cluster at {address}: {str(error).splitlines()[0]}") from None
        self.machines = len(self._slots())
        if not self.machines:
            self.close()
            wanted = "processors" if gpus_per_trial is None else f"{gpus_per_trial} GPUs"
            raise OptionsError(f"The Ray cluster at {address} has no machine with {wanted} to give.")

    def check(self, needed: RunOptions | ScriptFiles) -> None:
        """Ask every machine for its code and data before anything is measured.

        Raises:
            PipelineLabError: One differs, or does not answer; the text says which.
        """
        document = needed.model_dump(mode="json") if isinstance(needed, RunOptions) else asdict(needed)
        asked = [self._start(ray_trial.look, slot, document) for slot in find_slots(self._nodes(), None)]
        try:
            found = self._ray.get(asked, timeout=LOOK_S)
        except self._ray.exceptions.RayError as error:
            raise RunFailedError(
                "A machine of the cluster cannot measure, most likely because Pipeline Lab is not installed there "
                f"({str(error).strip().splitlines()[-1][:200]})."
            ) from None
        check_machines(describe_machine(needed), tuple(found))

    def run(self, trials: Sequence[Trial], watch: Watch) -> None:
        """Bring trials to their end, as many at once as there are slots; see :class:`Executor`."""
        waiting, lost = deque(trials), Counter[str]()
        running: dict[Any, tuple[Trial, Slot]] = {}
        idle_since_s = time.monotonic()
        try:
            while waiting or running:
                if watch.should_stop():
                    raise SearchStoppedError("The search was asked to stop; what it found so far is kept.")
                self._fill(waiting, running)
                idle_since_s = time.monotonic() if running else idle_since_s
                if time.monotonic() - idle_since_s > NO_MACHINE_S:
                    raise RunFailedError("No machine of the Ray cluster is left; start it again and resume the search.")
                for answer in self._wait(running):
                    trial, _ = running.pop(answer)
                    if not self._take(trial, answer, lost, watch):
                        waiting.appendleft(trial)
        finally:
            for answer in running:
                self._ray.cancel(answer, force=True)

    def spread(self, task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        """Do a task for every item, one on each processor of the cluster at a time; a lost one is repeated elsewhere.

        Every machine has to see what the items name under the same path.

        Raises:
            RunFailedError: One was lost again and again, or Pipeline Lab is not installed on a machine.
        """
        remote = self._ray.remote(task).options(num_cpus=1, max_retries=0, scheduling_strategy="SPREAD")
        waiting, lost = deque(enumerate(items)), Counter[int]()
        running: dict[Any, tuple[int, Item]] = {}
        try:
            while waiting or running:
                while waiting and len(running) < self._processors():
                    place, item = waiting.popleft()
                    running[remote.remote(item)] = (place, item)
                for answer in self._wait(running):
                    place, item = running.pop(answer)
                    try:
                        yield place, self._answer(answer)
                    except self._ray.exceptions.RayError:
                        lost[place] += 1
                        if lost[place] >= MOST_ATTEMPTS:
                            raise RunFailedError(LOST.format(times=MOST_ATTEMPTS)) from None
                        waiting.appendleft((place, item))
        finally:
            for answer in running:
                self._ray.cancel(answer, force=True)

    def close(self) -> None:
        """Leave the cluster; it goes on."""
        self._ray.shutdown()

    def _answer(self, answer: Any) -> Any:
        """Return what a task answered.

        Raises:
            RunFailedError: It broke in a way that is not its own.
            ray.exceptions.RayError: It was lost.
        """
        try:
            return self._ray.get(answer)
        except self._ray.exceptions.RayTaskError as error:
            raise RunFailedError(
                f"A machine of the cluster could not do its part: {str(error).strip().splitlines()[-1][:300]}"
            ) from None

    def _processors(self) -> int:
        """Return the processors of the machines that are alive; one where there is none just now."""
        return max(1, int(sum(node.cpus for node in self._nodes())))

    def _wait(self, running: dict[Any, Any]) -> Sequence[Any]:
        """Return answers that have come; none of them within a moment."""
        if not running:
            time.sleep(POLL_S)
            return ()
        done: Sequence[Any] = self._ray.wait(list(running), timeout=POLL_S)[0]
        return done

    def _fill(self, waiting: "deque[Trial]", running: dict[Any, tuple[Trial, Slot]]) -> None:
        """Give every free slot a trial."""
        taken = {slot for _, slot in running.values()}
        for slot in self._slots():
            if waiting and slot not in taken:
                trial = waiting.popleft()
                document = trial.options.model_dump(mode="json")
                running[self._start(ray_trial.measure, slot, document, slot.number, slot.of)] = (trial, slot)

    def _take(self, trial: Trial, answer: Any, lost: "Counter[str]", watch: Watch) -> bool:
        """Put what came back into the store; false if the trial was lost and is to be repeated.

        Raises:
            RunFailedError: It was lost too often, or broke in a way that is not its own.
        """
        try:
            found: ray_trial.TrialAnswer = self._answer(answer)
        except self._ray.exceptions.RayError:
            lost[trial.key] += 1
            if lost[trial.key] >= MOST_ATTEMPTS:
                raise RunFailedError(
                    f"A trial was lost {MOST_ATTEMPTS} times with the machine or process that measured it; "
                    "it may need more memory than they have."
                ) from None
            return False
        folder = ray_trial.unpack(found.archive, self._store, found.run_id)
        watch.ended(trial, Finished(folder.id, found.machine, found.seconds, found.failure))
        return True

    def _start(self, task: Any, slot: Slot, *arguments: Any) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        remote = self._ray.remote(task)
        place = NodeAffinitySchedulingStrategy(slot.node_id, soft=False)
        asked = remote.options(num_cpus=slot.cpus, num_gpus=slot.gpus, max_retries=0, scheduling_strategy=place)
        return asked.remote(*arguments)

    def _slots(self) -> list[Slot]:
        return find_slots(self._nodes(), self._gpus_per_trial)

    def _nodes(self) -> list[Node]:
        """Return the machines that are alive, in an order that stays."""
        alive = (node for node in self._ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) > 0)
        found = [Node(node["NodeID"], node["Resources"]["CPU"], node["Resources"].get("GPU", 0)) for node in alive]
        return sorted(found, key=lambda node: node.node_id)
