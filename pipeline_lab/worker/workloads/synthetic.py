"""Data and step of the synthetic workload: eight bytes of id, then filler; a step that takes a set time."""

import hashlib
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from pipeline_lab.data_classes import dataclass
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.runs.run_documents import DataFile
from pipeline_lab.units import NS_PER_MS
from pipeline_lab.worker.train.placement import compile_step
from pipeline_lab.worker.train.training_steps import Batch, OneDeviceTrainer, Trainer
from pipeline_lab.worker.workloads.data_and_step import DataAndStep
from pipeline_lab.worker.workloads.data_files import DataRecipe, record_id
from pipeline_lab.workloads.synthetic import SyntheticWorkload

ID_BYTES = 8


def synthetic_recipe(workload: SyntheticWorkload) -> DataRecipe:
    """Describe the files of the synthetic workload."""
    filler = bytes(workload.element_bytes - ID_BYTES)

    def write_file(path: Path, file_index: int, count: int) -> None:
        lengths = _filler_lengths(workload, file_index, count)
        with tf.io.TFRecordWriter(str(path)) as writer:
            for record, length in enumerate(lengths):
                writer.write(record_id(file_index, record).to_bytes(ID_BYTES, "little") + filler[:length])

    return DataRecipe(
        name="synthetic",
        description={
            "data": "synthetic",
            "bytes": workload.element_bytes,
            **({"lengths": "varied"} if workload.varied_lengths else {}),
        },
        examples_per_file=workload.examples_per_file,
        record_bytes=workload.element_bytes,
        write_file=write_file,
    )


def _filler_lengths(workload: SyntheticWorkload, file_index: int, count: int) -> list[int]:
    """Return the bytes after each record's id: always the same, or from half of them to all."""
    longest = workload.element_bytes - ID_BYTES
    if not workload.varied_lengths:
        return [longest] * count
    drawn: list[int] = np.random.default_rng(file_index).integers(longest // 2, longest + 1, count).tolist()
    return drawn


HASHED_BYTES = 100_000
MATRIX_SIZE = 2048
MATRIX_TRIALS, MATRIX_TRIALS_NS = 20, 100_000_000
"""Products of a trial, and how long the last trials have to take together: an idle GPU has a low clock, and raises it meanwhile (timed
once, a step of 20 ms took an H200 7 ms)."""
MOST_PRODUCTS, LOOPED_PRODUCTS = 500, 100
"""Products that stand in the graph one after another; further ones come first, in a loop of that many a round, because a
step of minutes would need a million nodes."""
FLOATS_PER_MB = 250_000


@dataclass(frozen=True)
class SyntheticStepTimes:
    """What a step of a set time does.

    Attributes:
        compute_ms: Time that its computation takes.
        spins: The computation keeps a core busy (on a GPU it works in any case).
        tiny_ops: Operations on single numbers that it also calls from Python.
        weights_mb: Size of the weights.
    """

    compute_ms: float
    spins: bool = False
    tiny_ops: int = 0
    weights_mb: float = 0.0


def make_timer(times: SyntheticStepTimes, *, is_gpu: bool) -> "HostTimer | GpuTimer":
    """Build a step that takes a set time."""
    return GpuTimer(times) if is_gpu else HostTimer(times)


class _Timer(OneDeviceTrainer):
    """What both kinds of device share: weights that nothing changes, and tiny operations."""

    def __init__(self, times: SyntheticStepTimes) -> None:
        self._weights = tf.Variable(tf.zeros([round(times.weights_mb * FLOATS_PER_MB)]))
        self._tiny_ops, self._number = times.tiny_ops, tf.constant(0.5)

    def weights(self) -> list[Any]:
        return [self._weights]

    def _run_tiny_ops(self) -> Any:
        number = self._number
        for _ in range(self._tiny_ops):
            number = tf.tanh(number)
        return number


class HostTimer(_Timer):
    """The step on a CPU: waits, or keeps one core busy, for a set time."""

    def __init__(self, times: SyntheticStepTimes) -> None:
        super().__init__(times)
        self._spend = _hash if times.spins else time.sleep
        self._seconds = tf.constant(times.compute_ms / 1e3, tf.float64)
        self._compute = compile_step(self._compute_on)

    def step(self, batch: Batch) -> Any:
        return self._compute(batch["payload"], self._run_tiny_ops())

    def evaluate(self, batch: Batch) -> Any:
        return self.step(batch)  # there is nothing that it could teach

    def read(self, result: Any) -> tuple[float, float]:
        del result
        return math.nan, math.nan

    def _compute_on(self, payload: Any, number: Any) -> Any:
        del payload
        tf.numpy_function(self._spend, [self._seconds], [])
        return number, number


class GpuTimer(_Timer):
    """The step on a GPU: as many matrix products as fill the set time.

    The last ones stand one after another in the graph, because TensorFlow waits for the device at the end of a loop in a
    graph.
    """

    def __init__(self, times: SyntheticStepTimes) -> None:
        super().__init__(times)
        self._matrix = tf.constant(np.eye(MATRIX_SIZE, dtype=np.float32))
        self._products = MATRIX_TRIALS
        self._products = self._count_products(times.compute_ms * NS_PER_MS)
        self._compute = compile_step(self._compute_on, reduce_retracing=True)  # the length of a payload may vary

    def step(self, batch: Batch) -> Any:
        return self._compute(batch["payload"], self._run_tiny_ops())

    def evaluate(self, batch: Batch) -> Any:
        return self.step(batch)  # there is nothing that it could teach

    def read(self, result: Any) -> tuple[float, float]:
        float(result[0])
        return math.nan, math.nan

    def _count_products(self, duration_ns: float) -> int:
        empty, compute = tf.zeros([1, 1], tf.uint8), compile_step(self._compute_on)
        float(compute(empty, self._number)[0])
        calls, lasted_ns = 1, 0
        while lasted_ns < MATRIX_TRIALS_NS:
            calls, start_ns = 2 * calls, time.perf_counter_ns()
            results = [compute(empty, self._number)[0] for _ in range(calls)]
            float(results[-1])
            lasted_ns = time.perf_counter_ns() - start_ns
        return max(1, round(duration_ns * calls * MATRIX_TRIALS / lasted_ns))

    def _compute_on(self, payload: Any, number: Any) -> Any:
        first = tf.cast(payload[0, 0], tf.float32)
        rounds = max(0, self._products - MOST_PRODUCTS) // LOOPED_PRODUCTS
        with tf.control_dependencies([first]):  # in a loop in the graph, the products would begin before their batch
            product = self._repeat_products(rounds) if rounds else self._matrix
            product = self._multiply(product, self._products - rounds * LOOPED_PRODUCTS)
        return product[0, 0] + first, number

    def _repeat_products(self, rounds: int) -> Any:
        """Compute that many rounds of products in a loop in the graph, shape (MATRIX_SIZE, MATRIX_SIZE)."""
        _, product = tf.while_loop(
            lambda done, _: done < rounds,
            lambda done, product: (done + 1, self._multiply(product, LOOPED_PRODUCTS)),
            (tf.constant(0), self._matrix),
        )
        return product

    def _multiply(self, product: Any, times: int) -> Any:
        for _ in range(times):
            product = tf.matmul(product, self._matrix)
        return product


def _hash(seconds: float) -> None:
    """Keep one core busy; hashing a large block lets other Python threads run meanwhile."""
    block = bytes(HASHED_BYTES)
    due_s = time.perf_counter() + seconds
    while time.perf_counter() < due_s:
        hashlib.sha256(block)


class SyntheticDataAndStep(DataAndStep[SyntheticWorkload]):
    """Records of filler; a step that takes a set time."""

    def recipe(self) -> DataRecipe:
        return synthetic_recipe(self.workload)

    def make_trainer(self, options: RunOptions, *, is_gpu: bool, tables: Sequence[DataFile], pipeline: Any) -> Trainer:
        del options, tables, pipeline
        workload = self.workload
        is_spinning = workload.work == "spin"
        return make_timer(
            SyntheticStepTimes(workload.compute_ms, is_spinning, workload.tiny_ops, workload.weights_mb), is_gpu=is_gpu
        )


DATA_AND_STEP = SyntheticDataAndStep
