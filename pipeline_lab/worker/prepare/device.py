"""Choose the device before TensorFlow initializes any."""

import os
from typing import Any, Literal

import tensorflow as tf

from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import OptionsError
from pipeline_lab.runs.machine.nvidia import find_gpu, gpu_ordinal
from pipeline_lab.runs.record import EMULATED_ACCELERATOR
from pipeline_lab.worker.train.training_steps import Batch

GPU_PART_MB = 1024
"""Memory of each logical GPU, where a GPU is divided."""


@dataclass(frozen=True)
class JobDevice:
    """The device of a job.

    Attributes:
        name: Such as ``CPU`` or ``GPU 0: NVIDIA H200``.
        is_gpu: TensorFlow runs the step on a GPU.
        gpus: Name and memory (bytes, None if unknown) of each visible GPU.
        ordinal: Place of the first one among those that CUDA shows to this process.
    """

    name: str
    is_gpu: bool
    gpus: list[dict[str, Any]]
    ordinal: int | None = None

    @property
    def is_asynchronous(self) -> bool:
        """Say whether it works in parallel to the host, which may be a few steps ahead: results are read on other threads."""
        return self.is_gpu or self.name == EMULATED_ACCELERATOR

    def describe(self) -> dict[str, Any]:
        """Return what the environment of a run says about it."""
        return {"gpus": self.gpus, "device": self.name}

    def hold(self, batch: Batch) -> Batch:
        """Put a batch into device memory, so that a step on it needs no copy."""
        if not self.is_gpu:
            return batch
        if any(isinstance(value, tf.distribute.DistributedValues) for value in tf.nest.flatten(batch)):
            return batch  # already on the devices
        with tf.device("/GPU:0"):
            held: Batch = tf.nest.map_structure(tf.identity, batch)
        return held


def choose_device(wish: Literal["auto", "cpu", "gpu", "emulated"], replicas: int = 1) -> JobDevice:
    """Make TensorFlow use the requested device.

    Args:
        wish: From the options.
        replicas: Devices that share each batch; with fewer devices, the first is divided into this many logical ones.

    Raises:
        OptionsError: A GPU was requested, but TensorFlow sees none.
    """
    if wish in ("cpu", "emulated"):
        # Hidden from CUDA too: Keras compiles with XLA wherever TensorFlow lists a GPU, used or not.
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    gpus = tf.config.list_physical_devices("GPU")
    if wish == "gpu" and not gpus:
        raise OptionsError(
            "training.device is gpu, but TensorFlow sees no GPU on this machine; choose auto or cpu, "
            "or install with requirements-gpu.txt (`pipeline-lab doctor` says what is missing)."
        )
    if wish == "emulated":
        tf.config.set_visible_devices([], "GPU")
        return JobDevice(EMULATED_ACCELERATOR, is_gpu=False, gpus=[])
    if wish == "cpu" or not gpus:
        tf.config.set_visible_devices([], "GPU")
        _divide(tf.config.list_physical_devices("CPU"), replicas)
        return JobDevice("CPU", is_gpu=False, gpus=[])
    used = gpus[:replicas] if replicas <= len(gpus) else gpus[:1]
    tf.config.set_visible_devices(
        used, "GPU"
    )  # TensorFlow makes a context on every visible one, and takes all its memory
    if not _divide(used, replicas, GPU_PART_MB):
        for gpu in used:
            tf.config.experimental.set_memory_growth(gpu, True)
    return present_device()


def present_device() -> JobDevice:
    """Return the device that TensorFlow uses by itself."""
    visible = tf.config.get_visible_devices("GPU")
    if not visible:
        return JobDevice("CPU", is_gpu=False, gpus=[])
    gpus = [_describe(gpu) for gpu in visible]
    return JobDevice(f"GPU 0: {gpus[0]['name']}", is_gpu=True, gpus=gpus, ordinal=gpu_ordinal(visible[0].name))


def _divide(devices: list[Any], replicas: int, memory_mb: int | None = None) -> bool:
    """Divide the first device if there are fewer devices than replicas; return whether it was."""
    if len(devices) >= replicas:
        return False
    part = tf.config.LogicalDeviceConfiguration(memory_limit=memory_mb)
    tf.config.set_logical_device_configuration(devices[0], [part] * replicas)
    return True


def _describe(gpu: Any) -> dict[str, Any]:
    details = tf.config.experimental.get_device_details(gpu)
    memory_bytes = find_gpu(gpu_ordinal(gpu.name)).total_bytes
    return {"name": str(details.get("device_name", gpu.name)), "memory_bytes": memory_bytes}
