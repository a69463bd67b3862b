"""What timing every step of a script costs: blocks of steps with the hooks at work and without, in turn, in one process.

    python -m benchmarks.step_timing [--pairs N] [--steps N]

For a loop that asks for each batch from Python and for Keras' `fit`, with steps as short as they get in practice. Processor time
of the process is compared beside wall time, since other programs do not change it. A difference of less than a percent is lost
in how blocks differ anyway, so what a step takes is also measured directly: noting its batch on the thread that trains, and making
its row on the other one.
"""

import argparse
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from pipeline_lab.capture.script import keras_hooks, step_hooks
from pipeline_lab.capture.script.step_log import StepLog
from pipeline_lab.capture.script.timed_steps import PERIOD_S
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.worker.note.event_log import Clock, EventLog

WIDTH = 256


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--steps", type=int, default=300)
    chosen = parser.parse_args()
    _measure_directly()
    data = tf.data.Dataset.from_tensors((tf.ones([32, WIDTH]), tf.ones([32, WIDTH]))).repeat().prefetch(2)
    for name, block in (("own loop", _own_loop(data)), ("Keras fit", _fit(data))):
        block(chosen.steps)
        _compare(name, lambda block=block: block(chosen.steps), chosen.pairs, chosen.steps)


def _measure_directly(blocks: int = 40, steps: int = 2000) -> None:
    """Tell the processor time of noting a batch, the least of several blocks with and without, and of making its row."""
    batches = iter(tf.data.Dataset.from_tensors(tf.ones([32, 1])).repeat())
    spent_ns: dict[bool, list[float]] = {False: [], True: []}
    rows_ns: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        own = RunFolder(Path(folder))
        log = StepLog(own, EventLog(own.events), Clock().offset_ns, list, step_hooks.read_gaps)
        for number in range(2 * blocks):
            if is_timed := bool(number % 2):
                step_hooks.listen(log.notes.append)
            begun_ns = time.thread_time_ns()
            for _ in range(steps):
                next(batches)
            spent_ns[is_timed].append((time.thread_time_ns() - begun_ns) / steps)
            step_hooks.leave(log.notes.append)
            if is_timed:
                begun_ns = time.thread_time_ns()
                log.drain(
                    time.perf_counter_ns() + 10**12
                )  # late enough for a loop without gradients to stand for the training
                rows_ns.append((time.thread_time_ns() - begun_ns) / steps)
        log.close(time.perf_counter_ns())
    noting_ns, row_ns = min(spent_ns[True]) - min(spent_ns[False]), statistics.median(rows_ns)
    share = (noting_ns + row_ns) / 2e6
    print(
        f"directly, own loop: noting a batch {noting_ns / 1e3:.2f} µs, its row {row_ns / 1e3:.2f} µs: {100 * share:.2f} % of 2 ms"
    )


def _own_loop(data: Any) -> Callable[[int], None]:
    weights = tf.Variable(tf.random.normal([WIDTH, WIDTH]))

    @tf.function
    def step(batch: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.tanh(tf.tanh(batch @ weights) @ weights))
        weights.assign_sub(0.01 * tape.gradient(loss, weights))
        return loss

    def block(steps: int) -> None:
        for batch, _ in data.take(steps):
            step(batch)

    return block


def _fit(data: Any) -> Callable[[int], None]:
    model = keras.Sequential([keras.layers.Dense(WIDTH, "tanh"), keras.layers.Dense(WIDTH)])
    model.compile("sgd", "mse")

    def block(steps: int) -> None:
        model.fit(data, steps_per_epoch=steps, verbose=0)

    return block


def _compare(name: str, block: Callable[[], None], pairs: int, steps: int) -> None:
    wall, processor, plain_s = [], [], []
    for number in range(pairs):
        order = (False, True) if number % 2 else (True, False)
        found = {is_timed: _measure(block, is_timed=is_timed) for is_timed in order}
        wall.append(found[True][0] / found[False][0] - 1)
        processor.append(found[True][1] / found[False][1] - 1)
        plain_s.append(found[False][0])
    step_ms = 1e3 * statistics.median(plain_s) / steps
    print(f"{name}: step {step_ms:.2f} ms; {pairs} pairs of {steps} steps")
    for what, values in (("wall time", wall), ("processor time", processor)):
        spread = statistics.stdev(values) / len(values) ** 0.5
        print(
            f"  {what}: {100 * statistics.median(values):+.2f} % (mean {100 * statistics.mean(values):+.2f} ± {196 * spread:.2f})"
        )


def _measure(block: Callable[[], None], *, is_timed: bool) -> tuple[float, float]:
    """Return wall and processor time of a block, s."""
    with tempfile.TemporaryDirectory() as folder:
        end = threading.Event()
        own = RunFolder(Path(folder))
        log = StepLog(own, EventLog(own.events), Clock().offset_ns, list, step_hooks.read_gaps)
        thread = threading.Thread(target=_drain, args=(log, end))
        if is_timed:
            step_hooks.listen(log.notes.append)
            keras_hooks.hook_keras()
            thread.start()
        begun = time.perf_counter(), time.process_time()
        block()
        spent = time.perf_counter() - begun[0], time.process_time() - begun[1]
        if is_timed:
            step_hooks.leave(log.notes.append)
            end.set()
            thread.join()
            log.close(time.perf_counter_ns())
    return spent


def _drain(log: StepLog, end: threading.Event) -> None:
    while not end.wait(PERIOD_S):
        log.drain(time.perf_counter_ns())


if __name__ == "__main__":
    main()
