"""Sample tf.data's performance model of the training pipeline while it runs.

TensorFlow models every pipeline whose autotuner is on: elements, thread time, buffers and parameters of each iterator.
Reading the model takes tens of microseconds and changes nothing.
"""

import contextlib
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import tensorflow as tf

from pipeline_lab.runs.run_tables import MODEL, TableWriter
from pipeline_lab.worker.note.event_log import Clock
from pipeline_lab.worker.record.own_process import run_beside

FIRST_PERIOD_S, PERIOD_S = 0.1, 1.0
PERIOD_SHARE, LONG_PERIOD_SHARE = 20, 1000
"""A sample is due after 1/20 of the pipeline's age, at most a second; in long runs after 1/1000 of it."""
MANY_NODES = 256
"""Most rows per second; larger models are sampled less often."""
SECONDS_PER_BATCH = 2.0
"""How often rows are written."""
NO_PARENT = -1
NODES_PER_ITERATOR = 100_000
"""Node numbers in the table reserved for each iterator."""


class ModelProbe:
    """Reads the model of an iterator into a table. Thread-safe.

    TensorFlow numbers the nodes of every iterator from the same start; in the table the numbers are unique.

    Args:
        table: Of schema ``MODEL``.
        clock: Of the job.
        find: Returns the iterator for each sample, for jobs that do not call :meth:`follow`.
    """

    def __init__(self, table: TableWriter, clock: Clock, find: Callable[[], Any] | None = None) -> None:
        self._table, self._clock, self._find = table, clock, find
        self._iterator: Any = None
        self._first_node: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._iterators = 0

    def follow(self, iterator: Any) -> None:
        """Sample this iterator from now on."""
        self._iterator = iterator

    def sample(self) -> int:
        """Append a row per node and return their number; 0 while TensorFlow has no model of an iterator."""
        iterator = self._iterator if self._find is None else self._find()
        if iterator is None:
            return 0
        try:
            model = tf.data.experimental.get_model_proto(iterator)
        except (tf.errors.NotFoundError, ValueError):  # autotuning is off, or a distributed iterator
            return 0
        time_ns, budget = self._clock.now_ns(), model.optimization_params
        first = self._first_node_of(iterator)
        rows = [
            (time_ns, first + node, parent if parent == NO_PARENT else first + parent, *row, *_budgets(budget))
            for node, parent, *row in _rows(model.nodes, model.output, NO_PARENT)
        ]
        if rows:
            self._table.extend(*zip(*rows, strict=True))
        return len(rows)

    def sample_until(self, end: threading.Event) -> None:
        """Sample whenever it is due, and once at the end."""
        begun_s, nodes = time.monotonic(), 0
        while not end.wait(period_s(time.monotonic() - begun_s, nodes)):
            nodes = self.sample()
        self.sample()

    def _first_node_of(self, iterator: Any) -> int:
        """Return the first node number of an iterator in the table."""
        if iterator not in self._first_node:
            self._first_node[iterator] = self._iterators * NODES_PER_ITERATOR
            self._iterators += 1
        return self._first_node[iterator]


@contextlib.contextmanager
def sample_model(path: Path, clock: Clock, find: Callable[[], Any] | None = None) -> Iterator[ModelProbe]:
    """Fill the model table from a thread while the block runs, and once at its end.

    Args:
        path: The table.
        clock: Of the job.
        find: Returns the iterator for each sample; None to call :meth:`ModelProbe.follow`.
    """
    with contextlib.closing(TableWriter(path, MODEL, SECONDS_PER_BATCH)) as table:
        probe = ModelProbe(table, clock, find)
        with run_beside("model", probe.sample_until):
            yield probe


def period_s(age_s: float, nodes: int) -> float:
    """Return the time until the next sample is due.

    Args:
        age_s: Time since the pipeline began.
        nodes: Rows of the last sample.
    """
    young = min(max(FIRST_PERIOD_S, age_s / PERIOD_SHARE), PERIOD_S)
    return max(young, age_s / LONG_PERIOD_SHARE, nodes / MANY_NODES)


def _rows(nodes: Any, number: int, parent: int, place: int = 0) -> Iterator[tuple[Any, ...]]:
    """Yield a row per node from the consumer to the sources, with the columns of ``MODEL`` except time and budgets."""
    node = nodes[number]
    found = {parameter.name: parameter for parameter in node.parameters}
    parallelism, cycle, buffer = (found.get(name) for name in ("parallelism", "cycle_length", "buffer_size"))
    most = found.get("max_buffered_elements")
    yield (
        number,
        parent,
        place,
        node.name,
        node.node_class,
        node.ratio,
        node.num_elements,
        node.processing_time,
        node.bytes_consumed,
        node.bytes_produced,
        node.buffered_elements,
        node.buffered_bytes,
        parallelism and parallelism.state_value,
        parallelism and may_change(parallelism),
        cycle and cycle.value,
        buffer.state_value if buffer else most and most.value,
        buffer and may_change(buffer),
    )
    for index, child in enumerate(node.inputs):
        if child in nodes:
            yield from _rows(nodes, child, number, index)


def _budgets(optimization: Any) -> tuple[int, int]:
    return optimization.cpu_budget, optimization.ram_budget


def may_change(parameter: Any) -> bool:
    """Say whether a parameter of the model is the autotuner's to set."""
    return bool(parameter.tunable and parameter.min < parameter.max)
