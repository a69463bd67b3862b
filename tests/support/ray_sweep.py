"""Conduct the same search on this machine and on a Ray cluster of two nodes, one of which is killed in the middle.

A program of its own, so that Ray's processes and threads end with it. Prints one JSON object: the winner of each search,
how many trials were sent out, how many were lost, and how many came back, and what tasks answered that were all lost once.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from ray._private import services
from ray.cluster_utils import Cluster

from pipeline_lab.pipeline.source import render_source
from pipeline_lab.runs.store import RunStore
from pipeline_lab.tuning.executors.executor import Executor
from pipeline_lab.tuning.executors.local import LocalExecutor
from pipeline_lab.tuning.executors.ray_cluster import RayExecutor
from pipeline_lab.tuning.search import search
from pipeline_lab.tuning.search_result import Tuning, read_tuning
from tests.support.leaving import leave_once
from tests.support.patience import PATIENCE_S
from tests.support.true_times import true_ms
from tests.support.worlds import predicted, tune_options

NODE = {"num_cpus": 1, "object_store_memory": 80_000_000}
OPTIONS = tune_options(max_configurations=4)


class LosingExecutor(RayExecutor):
    """Loses a node as soon as both are at work."""

    def __init__(self, store: RunStore, address: str, lose: Any) -> None:
        super().__init__(store, address)
        self.sent, self._at_work, self._lose = 0, 0, lose

    def _start(self, task: Any, slot: Any, *arguments: Any) -> Any:
        started = super()._start(task, slot, *arguments)
        if task.__name__ == "measure":
            self.sent += 1
            self._at_work += 1
            if self._at_work == 3:  # the start ran alone; the first race of two arms each is out on both nodes
                threading.Timer(0.5, self._lose).start()
        return started


def conduct(store: RunStore, executor: Executor) -> Tuning:
    folder = store.create(OPTIONS, render_source(OPTIONS.start))
    search(folder, OPTIONS, store, executor, lambda: False, predicted(true_ms))
    return read_tuning(folder)


find_node = services.get_node


def find_node_in_the_end(*arguments: Any) -> Any:
    """Wait for a node that starts; Ray itself gives up after 30 s, however busy the machine."""
    deadline_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            return find_node(*arguments)
        except RuntimeError:
            if time.monotonic() > deadline_s:
                raise
            time.sleep(0.1)


def main() -> None:
    services.get_node = find_node_in_the_end
    root = Path(sys.argv[1])
    local = conduct(RunStore(root / "local"), LocalExecutor(RunStore(root / "local")))
    os.environ["PLANTED_SECONDS"] = "1.5"
    cluster = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
    second = cluster.add_node(**NODE)
    cluster.wait_for_nodes(timeout=PATIENCE_S)
    store = RunStore(root / "cluster")
    executor = LosingExecutor(store, cluster.address, lambda: cluster.remove_node(second, allow_graceful=False))
    try:
        found = conduct(store, executor)
        spread = dict(executor.spread(leave_once, [root / "one", root / "two", root / "three"]))
    finally:
        executor.close()
        cluster.shutdown()
    answer = {
        "local": local.winner_name,
        "cluster": found.winner_name,
        "machines": executor.machines,
        "sent": executor.sent,
        "trials": len(found.trials),
        "spread": [spread[place] for place in sorted(spread)],
        "runs": sorted(record.status.state.value for record in store.runs() if record.kind != "tune"),
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
