"""Record a training loop in JAX on a GPU whose input stalls are known: python jax_capture.py FOLDER.

Writes the captures, and ``truth.json``: what a stopwatch says of each step, of all of them until the device is done, and of the step
on a batch that the device holds.
"""

import contextlib
import json
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

WIDTH, LAYERS, BATCH = 4096, 6, 4096
WAIT_S, LONG_WAIT_S, LONG_EVERY = 0.008, 0.040, 10
WARM, ALONE = 3, 20


def batches(rng: np.random.Generator, *, waits: bool) -> Iterator[Any]:
    """Yield batches of 67 MB; the generator sleeps before each where it ``waits``."""
    made = [rng.random((BATCH, WIDTH), dtype=np.float32) for _ in range(4)]
    number = 0
    while True:
        if waits:
            time.sleep(LONG_WAIT_S if number % LONG_EVERY == LONG_EVERY - 1 else WAIT_S)
        yield made[number % len(made)]
        number += 1


def loss(weights: list[Any], batch: Any) -> Any:
    found = batch
    for each in weights:
        found = jax.nn.relu(found @ each)
    return jnp.mean((found - batch) ** 2)


@jax.jit
def train_step(weights: list[Any], batch: Any) -> tuple[list[Any], Any]:
    value, gradients = jax.value_and_grad(loss)(weights, batch)
    return [each - 1e-3 * gradient for each, gradient in zip(weights, gradients, strict=True)], value


def record(folder: Path, steps: int, *, waits: bool, marks: bool, python: int, reads: bool = True) -> dict[str, Any]:
    """Record steps; return what a stopwatch says of them, ms."""
    rng = np.random.default_rng(0)
    weights = [jnp.asarray(rng.standard_normal((WIDTH, WIDTH)).astype(np.float32) / 64) for _ in range(LAYERS)]
    source = batches(rng, waits=waits)
    held = jax.device_put(next(source))
    for count in (WARM, ALONE):
        begun_s = time.perf_counter()
        for _ in range(count):
            weights, value = train_step(weights, held)
        value.block_until_ready()
        alone_ms = 1e3 * (time.perf_counter() - begun_s) / count
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level, options.host_tracer_level = python, 2
    step_ms, wait_ms = [], []
    jax.profiler.start_trace(str(folder), profiler_options=options)
    loop_s = time.perf_counter()
    for number in range(steps):
        begun_s = time.perf_counter()
        mark = jax.profiler.StepTraceAnnotation("train", step_num=number) if marks else contextlib.nullcontext()
        with mark:
            batch = next(source)
            wait_ms.append(1e3 * (time.perf_counter() - begun_s))
            weights, value = train_step(weights, jax.device_put(batch))
            if reads:
                value.block_until_ready()
        step_ms.append(1e3 * (time.perf_counter() - begun_s))
    value.block_until_ready()
    loop_ms = 1e3 * (time.perf_counter() - loop_s)
    jax.profiler.stop_trace()
    return {"compute_alone_ms": alone_ms, "step_ms": step_ms, "wait_ms": wait_ms, "loop_ms": loop_ms}


if __name__ == "__main__":
    folder, truth = Path(sys.argv[1]), {}
    for name, steps, settings in (
        ("jax_stalls", 30, {"waits": True, "marks": True, "python": 0}),
        ("jax_no_marks", 12, {"waits": True, "marks": False, "python": 1}),
        ("jax_fed", 30, {"waits": False, "marks": True, "python": 0}),
        ("jax_unread", 30, {"waits": True, "marks": True, "python": 0, "reads": False}),
    ):
        truth[name] = record(folder / name, steps, **settings)
        print(name, statistics.mean(truth[name]["step_ms"]), "ms per step")
    (folder / "truth.json").write_text(json.dumps(truth))
