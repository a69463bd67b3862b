import sys
from types import ModuleType, SimpleNamespace

import pytest

from pipeline_lab.capture import sampler
from pipeline_lab.capture.sampler import GpuInUse, shows_gpu
from pipeline_lab.worker.record.resources import GpuReading

BUSY = GpuReading(busy_percent=90.0)


def test_nothing_is_read_before_the_job_uses_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is a GPU, and somebody keeps it busy, but not this job."""
    monkeypatch.setattr(sampler, "Gpu", lambda **_: SimpleNamespace(read=lambda: BUSY))
    answers = iter([False, True])
    gpu = GpuInUse(lambda: next(answers))
    assert gpu.read() == GpuReading()
    assert gpu.read() == BUSY
    assert gpu.read() == BUSY, "and it is not asked again"


@pytest.mark.parametrize(
    ("found", "shown", "is_used"),
    [
        (None, ["gpu"], False),  # the job has not looked for devices yet
        (["cpu", "gpu"], ["gpu"], True),
        (["cpu", "gpu"], [], False),  # it has hidden the GPU
        (["cpu"], [], False),
    ],
)
def test_tensorflow_is_asked_only_after_the_job_itself_did(
    found: list[str] | None, shown: list[str], is_used: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = ModuleType("context")
    vars(context)["context_safe"] = lambda: SimpleNamespace(_physical_devices=found)
    tensorflow = ModuleType("tensorflow")
    vars(tensorflow)["config"] = SimpleNamespace(get_visible_devices=lambda _: shown)
    for name in ("tensorflow", "tensorflow.python", "tensorflow.python.eager"):
        monkeypatch.setitem(sys.modules, name, tensorflow)
    monkeypatch.setitem(sys.modules, "tensorflow.python.eager.context", context)
    assert shows_gpu() is is_used
