"""A pretend GPU: a plug-in device for the stock TensorFlow, so that what happens on a GPU is tested without one.

It registers as ``GPU:0`` with CUDA's names, places and computes every op as a GPU would, but on host memory, and keeps the
time of each stream on a virtual clock: asynchrony, copies, synchronization, memory limits and the profiler's device plane
are those of CUDA. It has no XLA, NCCL or logical devices. ``docs/gpu.md`` says what that proves, and what it cannot.
"""

import fcntl
import hashlib
import os
import shutil
import struct
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

SOURCES = Path(__file__).parent
DEVICE, NVML = "libpretend_gpu.so", "libnvidia-ml.so.1"
_FLAGS = ("-std=c++17", "-O1", "-fPIC", "-shared", "-fvisibility=hidden", "-w")
_TENSORFLOW_FLAGS = ("-D_GLIBCXX_USE_CXX11_ABI=1", "-DEIGEN_MAX_ALIGN_BYTES=64", "-DNDEBUG")
"""Those that its wheel was built with and that change what its headers mean."""


@dataclass(frozen=True)
class PretendGpu:
    """The pretend GPUs of a process, and what they are like; ``environment()`` hands it to them.

    Attributes:
        count: GPUs in the machine.
        visible: Those that the process sees, as in ``CUDA_VISIBLE_DEVICES``; None for all.
        memory_mb: Memory of each.
        kernel_us: Time of the shortest kernel.
        op_us: Time of each kernel of an op, by the name of the op; 0 for no kernel.
        gflops, memory_gbps: Speed of the other kernels.
        copy_gbps: Speed of copies between host and device.
        skip_mflop: Larger products and convolutions are not computed, so that the host is not busy with them; results begin with zeros.
        waits_for_kernels: The host waits for each kernel, as with ``CUDA_LAUNCH_BLOCKING=1``.
        has_trace: The profiler sees the device; without it, there is no plane, as if CUPTI did not work.
        profiler_mb: Memory of the host that the first profiler session takes, as loading CUPTI does.
        profiler_error, profiler_warning: What the profiler writes into ``XSpace.errors`` and ``XSpace.warnings``.
        ledger: A file that says who uses how much memory; processes that share it share the GPUs' memory.
        clock_reasons: NVML's reasons for lower clocks, as a mask.
        nvml_errors: Error codes by the NVML function that returns them.
    """

    count: int = 1
    visible: str | None = None
    memory_mb: float = 4096
    kernel_us: float = 5
    op_us: Mapping[str, float] = field(default_factory=dict)
    gflops: float = 1000
    memory_gbps: float = 300
    copy_gbps: float = 12
    skip_mflop: float = 50
    waits_for_kernels: bool = False
    has_trace: bool = True
    profiler_mb: float = 0
    profiler_error: str = ""
    profiler_warning: str = ""
    ledger: Path | None = None
    clock_reasons: int = 0
    nvml_errors: Mapping[str, int] = field(default_factory=dict)

    def settings(self) -> dict[str, str]:
        """Return the variables that describe these GPUs."""
        shown = ",".join(map(str, range(self.count))) if self.visible is None else self.visible
        own = {each.name: _text(getattr(self, each.name)) for each in fields(self) if each.name != "visible"}
        return {f"PRETEND_GPU_{name.upper()}": value for name, value in own.items()} | {"CUDA_VISIBLE_DEVICES": shown}

    def environment(self, folder: Path) -> dict[str, str]:
        """Return the variables that make a process see these GPUs.

        Args:
            folder: Of the libraries, as :func:`build` returns it.
        """
        searched = filter(None, (str(folder), os.environ.get("LD_LIBRARY_PATH")))
        return self.settings() | {
            "TF_PLUGGABLE_DEVICE_LIBRARY_PATH": str(folder / DEVICE),
            "LD_LIBRARY_PATH": os.pathsep.join(searched),
        }


def _text(value: object) -> str:
    if isinstance(value, Mapping):
        return ",".join(f"{key}={number:g}" for key, number in value.items())
    if isinstance(value, bool):
        return str(int(value))
    return "" if value is None else str(value)


@dataclass(frozen=True)
class Context:
    """A process on a GPU, living or ended.

    Attributes:
        pid: The process.
        device: The GPU's place on the bus.
        used_bytes, peak_bytes: Memory that it holds, and the most that it held.
    """

    pid: int
    device: int
    used_bytes: int
    peak_bytes: int


_ROW = struct.Struct("iiqq")  # ledger.h


def read_ledger(path: Path) -> list[Context]:
    """Return all contexts that were made on the GPUs of a ledger."""
    rows = [Context(*row) for row in _ROW.iter_unpack(path.read_bytes())] if path.exists() else []
    return [row for row in rows if row.pid]


def enter_other(path: Path, used_bytes: int) -> None:
    """Let this process hold memory of the first GPU of a new ledger."""
    path.write_bytes(_ROW.pack(os.getpid(), 0, used_bytes, used_bytes))


def build(cache: Path) -> Path:
    """Compile both libraries, or find them compiled, and return their folder.

    Args:
        cache: Keeps them per version of their sources and of TensorFlow; processes that come at once wait for one of them.
    """
    texts = (path.read_bytes() for path in sorted(SOURCES.glob("*.[ch]*")))
    key = hashlib.sha256(b"\0".join([*texts, " ".join(_FLAGS).encode(), version("tensorflow").encode()])).hexdigest()[
        :16
    ]
    folder = cache / key
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            _compile(folder.with_suffix(".new"))
            folder.with_suffix(".new").rename(folder)
    return folder


def _compile(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    found = find_spec("tensorflow")
    tensorflow = (
        Path(found.origin).parent if found and found.origin else Path()
    )  # once loaded, it is searched elsewhere, too
    # One unit of all sources: nearly all of the time goes into reading TensorFlow's headers, which they share.
    *first, last = (str(SOURCES / name) for name in ("device.cc", "streams.cc", "profiler.cc", "kernels.cc"))
    sources = [*(word for each in first for word in ("-include", each)), last]
    linked = [
        f"-I{tensorflow}/include",
        f"-L{tensorflow}",
        "-l:libtensorflow_framework.so.2",
        f"-Wl,-rpath,{tensorflow}",
    ]
    for command in (
        ["g++", *_FLAGS, *_TENSORFLOW_FLAGS, *sources, "-o", str(folder / DEVICE), *linked],
        ["g++", *_FLAGS, str(SOURCES / "nvml.cc"), "-o", str(folder / NVML)],
    ):
        subprocess.run(command, check=True)
