"""What tests ask of a process with pretend GPUs (fixture ``ask_gpu``)."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import keras
import tensorflow as tf
from tensorflow.python.eager import context

from pipeline_lab.capture.sampler import GpuInUse, find_used
from pipeline_lab.runs.machine.nvidia import find_gpu, find_gpus
from pipeline_lab.worker.job_process import load_quietly
from pipeline_lab.worker.note.failures import explain_failure
from pipeline_lab.worker.prepare.device import choose_device
from pipeline_lab.worker.probe import ON_GPU, make_step, measure
from pipeline_lab.worker.record.profiler import TensorFlowProfiler
from pipeline_lab.worker.record.window_recorder import WindowRecorder
from tests.support.presets import SYNTHETIC
from tests.worker.fakes import make_job


def choose(wish: Literal["auto", "cpu", "gpu"], replicas: int, *, is_used: bool = True) -> dict[str, Any]:
    """Choose the device of a job, and let TensorFlow use it."""
    found = choose_device(wish, replicas)
    if is_used:
        tf.ones([1])
    return {**asdict(found), "visible": [gpu.name for gpu in tf.config.get_visible_devices("GPU")]}


def load_as_spare() -> list[bool]:
    """Load what a job needs, as a worker does before there is one; say whether that worked, and whether devices are in use."""
    return [load_quietly(), context.context()._initialized]


def read_gpu_of_script(chosen: int) -> dict[str, Any]:
    """Read the GPU of a script that trains on another one than the first."""
    tf.config.set_visible_devices(tf.config.list_physical_devices("GPU")[chosen], "GPU")
    return asdict(GpuInUse(find_used).read())


def read_gpu(ordinal: int) -> dict[str, Any]:
    gpu = find_gpu(ordinal)
    return {**asdict(gpu.read()), "slowed_by": gpu.slowed_by(), "is_unsteady": gpu.is_unsteady()}


def count_gpus() -> int | str:
    found = find_gpus()
    return len(found) if isinstance(found, list) else found.reason


def growth_of_first_window(folder: str) -> int:
    """Record a window, and return by how much the memory grew meanwhile, bytes."""
    tf.ones([1])
    job = make_job(Path(folder), SYNTHETIC.options)
    recorder = WindowRecorder(job.folder, TensorFlowProfiler(), job.log, job.clock)
    window = recorder.open()
    recorder.note_memory()
    recorder.close()
    recorder.finish()
    return window.growth_bytes


def compiles_with_xla(wish: Literal["auto", "cpu"]) -> bool:
    """Say whether Keras compiles a model of a job with XLA by itself."""
    choose_device(wish)
    context.context().reinitialize_physical_devices()  # a plug-in's GPUs are listed before there is a job
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile()
    return bool(model.jit_compile)


def explain_error(kind: Literal["label", "memory"]) -> str:
    """Let a graph fail on the device, and explain it."""

    @tf.function
    def lose(labels: Any) -> Any:
        return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=tf.zeros([1, 10]))

    @tf.function
    def fill(side: Any) -> Any:
        return tf.reduce_sum(tf.ones([side, 1000, 1000]))

    try:
        float(lose(tf.constant([12]))[0]) if kind == "label" else float(fill(tf.constant(2000)))
    except tf.errors.OpError as error:
        return explain_failure(error)
    return "nothing failed"


def probe(names: list[str]) -> list[dict[str, Any]]:
    """Take some of the doctor's measurements."""
    return list(measure({name: ON_GPU[name] for name in names}))


def time_step_of_probe() -> dict[str, float]:
    """Say when the call of the doctor's step returned and when its result was on the host, s."""
    step, _ = make_step()
    begun_s = time.perf_counter()
    result = step()
    called_s = time.perf_counter() - begun_s
    float(result)
    return {"called": called_s, "read": time.perf_counter() - begun_s}
