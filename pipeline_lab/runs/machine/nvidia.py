"""What NVIDIA's driver tells of its GPUs through its management library, NVML: memory, load and clocks."""

import contextlib
import ctypes
import os
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import Unavailable

Answer = TypeVar("Answer")

REASONS = {
    0x04: "its power limit",
    0x08: "a hardware slowdown",
    0x20: "heat (software)",
    0x40: "heat (hardware)",
    0x80: "the power brake",
}
"""NVML's reasons for lower clocks that cost speed, by their bit."""
POWER_LIMIT = 0x04
"""The usual one: a busy GPU draws what it may. It holds evenly, unlike the others."""


@dataclass(frozen=True)
class GpuReading:
    """One reading; each number is None where the driver does not provide it, all without a GPU.

    Attributes:
        memory_bytes: In use.
        busy_percent: Share of the last moments in which a kernel ran.
        clock_mhz: Of the multiprocessors.
        is_slowed: Clocks are lowered because of heat or power.
    """

    memory_bytes: int | None = None
    busy_percent: float | None = None
    clock_mhz: int | None = None
    is_slowed: bool | None = None


class ReadsGpu(Protocol):
    """Reads a GPU."""

    def read(self) -> GpuReading: ...


class Gpu:
    """Reads a GPU; every answer is None where the driver does not give it.

    Args:
        nvml: NVML's binding; None without a GPU.
        handle: NVML's of the GPU.
    """

    def __init__(self, nvml: Any = None, handle: Any = None) -> None:
        self._nvml, self._handle = nvml, handle

    def read(self) -> GpuReading:
        """Read what changes while a job runs; takes some hundred microseconds."""
        return GpuReading(
            memory_bytes=self._ask("nvmlDeviceGetMemoryInfo", lambda found: int(found.used)),
            busy_percent=self._ask("nvmlDeviceGetUtilizationRates", lambda found: float(found.gpu)),
            clock_mhz=self._ask("nvmlDeviceGetClockInfo", int, getattr(self._nvml, "NVML_CLOCK_SM", None)),
            is_slowed=self._ask(_CLOCK_REASONS, lambda found: any(found & bit for bit in REASONS)),
        )

    def is_unsteady(self) -> bool:
        """Say whether the clocks are lowered now for a reason that comes and goes: heat or missing power."""
        return bool(self._ask(_CLOCK_REASONS, lambda found: any(found & bit for bit in REASONS if bit != POWER_LIMIT)))

    def slowed_by(self) -> list[str] | None:
        """Return why the clocks are lowered now."""
        return self._ask(_CLOCK_REASONS, lambda found: [reason for bit, reason in REASONS.items() if found & bit])

    @property
    def name(self) -> str | None:
        return self._ask("nvmlDeviceGetName", str)

    @property
    def total_bytes(self) -> int | None:
        """Memory of the GPU."""
        return self._ask("nvmlDeviceGetMemoryInfo", lambda found: int(found.total))

    @property
    def others_bytes(self) -> int | None:
        """Memory that other processes use. Where this one isn't listed, as in containers, nobody knows which are others."""

        def sum_up(found: Any) -> int | None:
            others = [each for each in found if each.pid != os.getpid()]
            return sum(each.usedGpuMemory or 0 for each in others) if len(others) < len(found) else None

        return self._ask("nvmlDeviceGetComputeRunningProcesses", sum_up)

    @property
    def highest_mhz(self) -> int | None:
        """Highest clock of the multiprocessors."""
        return self._ask("nvmlDeviceGetMaxClockInfo", int, getattr(self._nvml, "NVML_CLOCK_SM", None))

    def _ask(self, question: str, convert: Callable[[Any], Answer], *arguments: Any) -> Answer | None:
        if self._nvml is None:
            return None
        try:
            return convert(getattr(self._nvml, question)(self._handle, *arguments))
        except self._nvml.NVMLError:
            return None


_CLOCK_REASONS = "nvmlDeviceGetCurrentClocksThrottleReasons"


def find_gpus() -> list[Gpu] | Unavailable:
    """Return all GPUs of the machine, in the order of the bus."""
    import pynvml

    try:
        pynvml.nvmlInit()
        handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
    except pynvml.NVMLError as error:
        return Unavailable(f"NVIDIA's management library does not answer: {error}.")
    return [Gpu(pynvml, handle) for handle in handles]


def find_gpu(ordinal: int | None) -> Gpu:
    """Find a GPU that this process uses.

    Args:
        ordinal: Its place among those that CUDA shows to the process; None for none.
    """
    import pynvml

    if ordinal is not None:
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlInit()
            handle = _find_handle(pynvml, ordinal)
            return Gpu() if handle is None else Gpu(pynvml, handle)
    return Gpu()


def gpu_ordinal(name: str) -> int:
    """Return a GPU's place among those that CUDA shows, from TensorFlow's name of it: ``/physical_device:GPU:1``."""
    return int(name.rpartition(":")[2])


def _find_handle(nvml: Any, ordinal: int) -> Any:
    """Return NVML's handle; None if CUDA does not show that many GPUs.

    An entry of ``CUDA_VISIBLE_DEVICES`` is a number, the beginning of a GPU's UUID, or the UUID of a MIG instance. NVML
    numbers by position on the bus; CUDA does among GPUs of one kind, and where ``CUDA_DEVICE_ORDER`` asks for it.
    """
    shown = os.environ.get("CUDA_VISIBLE_DEVICES")
    entries = [str(ordinal)] if shown is None else shown.split(",")[ordinal : ordinal + 1]
    entry = entries[0].strip() if entries else ""
    if entry.startswith("MIG-"):
        return nvml.nvmlDeviceGetHandleByUUID(entry)
    if bus_id := _ask_cuda(ordinal):
        return nvml.nvmlDeviceGetHandleByPciBusId(bus_id)
    if entry.isdecimal():
        return nvml.nvmlDeviceGetHandleByIndex(int(entry))
    if not entry.startswith("GPU-"):
        return None
    handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
    return next((handle for handle in handles if nvml.nvmlDeviceGetUUID(handle).startswith(entry)), None)


def _ask_cuda(ordinal: int) -> bytes | None:
    """Return a GPU's position on the bus, if CUDA has been started in this process; it is not started here."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD)
        device, bus_id = ctypes.c_int(), ctypes.create_string_buffer(32)
        failed = cuda.cuDeviceGet(ctypes.byref(device), ordinal) or cuda.cuDeviceGetPCIBusId(bus_id, 32, device)
    except (OSError, AttributeError):  # it is not loaded
        return None
    return None if failed else bus_id.value
