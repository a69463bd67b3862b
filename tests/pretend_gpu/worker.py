"""The process that has TensorFlow loaded beside a pretend GPU: fixture ``ask_gpu``.

Each question is answered by a fork, in which TensorFlow has not used a device yet. So every test has the GPUs that it
describes, to itself, and does not wait for TensorFlow to be imported.
"""

import ctypes
import json
import os
import traceback
from typing import Any

from tensorflow.python.eager import context

import pipeline_lab.worker.training_session  # noqa: F401, what most tests need
from pipeline_lab.worker.record import window_recorder
from tests.support.warm_worker import find_task, serve

window_recorder.lower_own_priority = lambda: None  # beside other tests, its turn would come once in ten


def ask_fork(name: str, gpu: dict[str, str], **arguments: Any) -> Any:
    """Call a function in a new process with GPUs as described.

    Args:
        name: Module and name, with a colon between.
        gpu: ``PretendGpu.settings()``.
        **arguments: Of the function.

    Raises:
        RuntimeError: It failed, or ended its process.
    """
    task = find_task(name, {})
    answers, answer = os.pipe()
    if not (child := os.fork()):
        _set_up(gpu)
        _answer(answer, task, arguments)
    os.close(answer)
    with os.fdopen(answers) as file:
        told = file.read()
    _, status = os.waitpid(child, 0)
    if not told:
        raise RuntimeError(f"{name} ended its process with status {status}")
    document = json.loads(told)
    if "error" in document:
        raise RuntimeError(document["error"])
    return document["result"]


def _set_up(gpu: dict[str, str]) -> None:
    """Let TensorFlow, which looks for the GPUs of a plug-in when it is imported, look again."""
    os.environ.update(gpu)
    ctypes.CDLL(os.environ["TF_PLUGGABLE_DEVICE_LIBRARY_PATH"]).PretendGpuReadSettings()
    context.context().reinitialize_physical_devices()


def _answer(pipe: int, task: Any, arguments: dict[str, Any]) -> None:
    """Write what a task returns, and end this process."""
    try:
        told = {"result": task(**arguments)}
    except Exception:
        told = {"error": traceback.format_exc()}
    with os.fdopen(pipe, "w") as file:
        json.dump(told, file)
    os._exit(0)


if __name__ == "__main__":
    serve(lambda name: lambda **arguments: ask_fork(name, **arguments))
