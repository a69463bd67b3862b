import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from pipeline_lab.capture import device_use
from pipeline_lab.capture.device_use import UsedDevice, are_devices_in_use, note_new_sessions


class Session:
    def __init__(self, target: str = "") -> None:
        self.target = target


@pytest.fixture
def context(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """TensorFlow's eager context."""
    fake, module, client = SimpleNamespace(_initialized=False), ModuleType("context"), ModuleType("session")
    vars(module)["context_safe"], vars(client)["BaseSession"] = lambda: fake, type("BaseSession", (Session,), {})
    for name in ("tensorflow", "tensorflow.python", "tensorflow.python.eager", "tensorflow.python.client"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "tensorflow.python.eager.context", module)
    monkeypatch.setitem(sys.modules, "tensorflow.python.client.session", client)
    monkeypatch.setattr(device_use, "_sessions", False)
    return fake


def test_devices_are_in_use_once_the_job_has_an_initialized_context(context: SimpleNamespace) -> None:
    assert not are_devices_in_use()
    context._initialized = True
    assert are_devices_in_use()


@pytest.mark.usefixtures("context")
def test_devices_are_in_use_once_the_job_has_made_a_session() -> None:
    session = sys.modules["tensorflow.python.client.session"].BaseSession
    note_new_sessions()
    note_new_sessions()
    assert not are_devices_in_use()
    assert session("grpc://").target == "grpc://"
    assert are_devices_in_use()


def test_no_devices_are_in_use_before_tensorflow_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "tensorflow.python.eager.context", raising=False)
    monkeypatch.setattr(device_use, "_sessions", False)
    assert not are_devices_in_use()


def test_the_device_is_described_once_the_job_uses_it(
    context: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, told = ModuleType("device"), list[dict[str, Any]]()
    vars(module)["present_device"] = lambda: SimpleNamespace(describe=lambda: {"device": "GPU 0: NVIDIA H200"})
    monkeypatch.setitem(sys.modules, "pipeline_lab.worker.prepare.device", module)
    device = UsedDevice(told.append)
    assert not device.look()
    assert not told, "to list devices would start CUDA"
    context._initialized = True
    assert device.look()
    assert device.look()
    assert told == [{"device": "GPU 0: NVIDIA H200"}]
