import sys
from types import ModuleType, SimpleNamespace

import pytest

from pipeline_lab.capture import sampler
from pipeline_lab.capture.sampler import GpuInUse, find_used
from pipeline_lab.runs.machine.nvidia import GpuReading

BUSY = GpuReading(busy_percent=90.0)


def test_nothing_is_read_before_the_job_uses_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is a GPU, and somebody keeps it busy, but not this job."""
    monkeypatch.setattr(sampler, "find_gpu", lambda _: SimpleNamespace(read=lambda: BUSY))
    answers = iter([None, 0])
    gpu = GpuInUse(lambda: next(answers))
    assert gpu.read() == GpuReading()
    assert gpu.read() == BUSY
    assert gpu.read() == BUSY, "and it is not asked again"


@pytest.mark.parametrize(
    ("found", "shown", "used"),
    [
        (None, ["GPU:0"], None),  # the job has not looked for devices yet
        (["CPU:0", "GPU:0"], ["GPU:0"], 0),
        (["CPU:0", "GPU:0", "GPU:1"], ["GPU:1"], 1),  # it has chosen another one
        (["CPU:0", "GPU:0"], [], None),  # it has hidden the GPU
        (["CPU:0"], [], None),
    ],
)
def test_tensorflow_is_asked_only_after_the_job_itself_did(
    found: list[str] | None, shown: list[str], used: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = ModuleType("context")
    vars(context)["context_safe"] = lambda: SimpleNamespace(_physical_devices=found)
    tensorflow = ModuleType("tensorflow")
    vars(tensorflow)["config"] = SimpleNamespace(
        get_visible_devices=lambda _: [SimpleNamespace(name=f"/physical_device:{name}") for name in shown]
    )
    for name in ("tensorflow", "tensorflow.python", "tensorflow.python.eager"):
        monkeypatch.setitem(sys.modules, name, tensorflow)
    monkeypatch.setitem(sys.modules, "tensorflow.python.eager.context", context)
    assert find_used() == used
