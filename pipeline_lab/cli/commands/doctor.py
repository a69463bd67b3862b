"""``pipeline-lab doctor``: what works on this machine, what does not, what to do. TensorFlow runs in a separate process."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs
import typer
from rich.table import Table
from rich.text import Text

from pipeline_lab.cli.arguments import JsonOption, StoreOption
from pipeline_lab.cli.output import messages, print_json, results
from pipeline_lab.errors import PipelineLabError
from pipeline_lab.units import format_bytes

if TYPE_CHECKING:
    from pipeline_lab.runs.store import RunStore

PYTHON_VERSIONS = ((3, 11), (3, 13))
LOW_DISK_BYTES = 2 * 10**9
PROBE_TIMEOUT_S = 180
_REINSTALL = (
    "If this machine is busy, try again later; otherwise reinstall it: pip install --force-reinstall tensorflow."
)
BROWSERS = ("chromium", "chromium-browser", "google-chrome")

_PROBE = """
import glob, json, tempfile
import tensorflow as tf
devices = [device.name.removeprefix("/physical_device:") for device in tf.config.list_physical_devices()]
with tempfile.TemporaryDirectory() as folder:
    values = tf.random.normal((64, 64))
    tf.linalg.matmul(values, values)
    tf.profiler.experimental.start(folder)
    tf.linalg.matmul(values, values).numpy()
    tf.profiler.experimental.stop()
    trace = b"".join(open(path, "rb").read() for path in glob.glob(folder + "/**/*.xplane.pb", recursive=True))
print(json.dumps({
    "devices": devices,
    "cuda": tf.test.is_built_with_cuda(),
    "host_traced": b"/host:CPU" in trace,
    "gpu_traced": b"/device:GPU:0" in trace,
}))
"""


@dataclass(frozen=True)
class Check:
    """One line of the doctor's report.

    Attributes:
        name: What was looked at.
        works: Whether it does.
        needed: Whether jobs or analyses fail without it.
        found: What was found, in words.
        advice: What to do if it does not work; empty if it does.
    """

    name: str
    works: bool
    found: str
    advice: str = ""
    needed: bool = True

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def quick_checks(store: "RunStore") -> Iterator[Check]:
    """Check everything that needs no TensorFlow process."""
    yield _check_python()
    yield _check_tensorflow_package()
    yield _check_store(store)
    yield _check_disk(store)
    yield _check_runtime()
    yield _check_compiled_code()
    yield _check_browser()
    yield _check_images()


def tensorflow_checks(probe: Callable[[], dict[str, Any] | str], gpus: list[str]) -> Iterator[Check]:
    """Check with a TensorFlow process: it starts, sees the GPU, and its profiler records.

    Args:
        probe: Probes TensorFlow (:func:`probe_tensorflow`); returns what it found, or why it found nothing.
        gpus: GPUs of the driver (:func:`find_gpus`).
    """
    found = probe()
    if isinstance(found, str):
        yield Check("TensorFlow starts", False, found, _REINSTALL)
        return
    yield Check("TensorFlow starts", True, f"devices {', '.join(found['devices'])}")
    yield _check_gpu(gpus, found)
    yield Check(
        "Profiler",
        found["host_traced"],
        "a test recording contains host events" if found["host_traced"] else "a test recording is empty",
        "" if found["host_traced"] else "Another profiler may be attached to the process; end it.",
    )
    if gpus and _sees_gpu(found):
        yield _check_cupti(found)


def probe_tensorflow() -> dict[str, Any] | str:
    """Start TensorFlow in a separate process and record a small trace."""
    from pipeline_lab.runs.launch.runtime import child_environment

    command = [sys.executable, "-c", _PROBE]
    environment = child_environment() | {"TF_CPP_MIN_LOG_LEVEL": "2"}
    try:
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=PROBE_TIMEOUT_S, env=environment, check=False
        )
    except subprocess.TimeoutExpired:
        return f"it did not start within {PROBE_TIMEOUT_S} s"
    lines = (ended.stdout if ended.returncode == 0 else ended.stderr).strip().splitlines() or ["without a message"]
    if ended.returncode != 0:
        return f"it ended with exit code {ended.returncode}: {lines[-1][:300]}"
    document: dict[str, Any] = json.loads(lines[-1])
    return document


def find_gpus() -> list[str]:
    """Return the names of the NVIDIA GPUs that the driver shows; none without a driver."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return []
    try:
        handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
        return [str(pynvml.nvmlDeviceGetName(handle)) for handle in handles]
    finally:
        pynvml.nvmlShutdown()


def _check_python() -> Check:
    lowest, highest = PYTHON_VERSIONS
    works = lowest <= sys.version_info[:2] <= highest
    found = f"{sys.version.split()[0]} at {sys.executable}"
    return Check("Python", works, found, "" if works else "Use Python 3.11, 3.12 or 3.13.")


def _check_tensorflow_package() -> Check:
    try:
        return Check("TensorFlow package", True, version("tensorflow"))
    except PackageNotFoundError:
        works = importlib.util.find_spec("tensorflow") is not None  # a build under another name, such as a nightly
        found = "installed under another name" if works else "not installed"
        advice = "" if works else "pip install tensorflow (tensorflow[and-cuda] for an NVIDIA GPU)."
        return Check("TensorFlow package", works, found, advice)


def _check_store(store: "RunStore") -> Check:
    folder = next(path for path in (store.root, *store.root.parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=folder):
            state = "is writable" if folder == store.root else "does not exist yet; the first run makes it"
            return Check("Run store", True, f"{store.root} {state}")
    except OSError as error:
        found = f"{folder} is not writable ({error.strerror})"
        return Check("Run store", False, found, "Name another folder with --store or PIPELINE_LAB_STORE.")


def _check_disk(store: "RunStore") -> Check:
    folder = next(path for path in (store.root, *store.root.parents) if path.is_dir())
    free_bytes = shutil.disk_usage(folder).free
    works = free_bytes >= LOW_DISK_BYTES
    advice = "" if works else f"Free some space: a run takes up to {format_bytes(LOW_DISK_BYTES)} with its data."
    return Check("Disk", works, f"{format_bytes(free_bytes)} free for the run store", advice)


def _check_runtime() -> Check:
    from pipeline_lab.folders import runtime_folder

    try:
        return Check("Queue", True, f"{runtime_folder()} contains the locks that serialize measurements")
    except PipelineLabError as error:
        return Check("Queue", False, str(error), "Runs cannot start until this is fixed.")


def _check_compiled_code() -> Check:
    package = Path(__file__).parents[2] / "trace"
    named = os.environ.get("NUMBA_CACHE_DIR")
    folders = [Path(named)] if named else [package, platformdirs.user_cache_path("numba")]
    writable = next((folder for folder in folders if _is_writable(folder)), None)
    if writable is not None:
        return Check("Compiled trace reader", True, f"saved in {writable}", needed=False)
    found = "cannot be saved, so each analysis compiles it again"
    advice = "Set NUMBA_CACHE_DIR to a writable folder."
    return Check("Compiled trace reader", False, found, advice, needed=False)


def _check_browser() -> Check:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is not None:
        return Check("Browser for the tests", True, browser, needed=False)
    return Check(
        "Browser for the tests",
        False,
        "no Chromium",
        "Only `make test` needs it: apt-get update && apt-get install -y chromium.",
        needed=False,
    )


def _check_gpu(gpus: list[str], found: dict[str, Any]) -> Check:
    if not gpus:
        return Check("GPU", True, "none; jobs run on the CPU", needed=False)
    if _sees_gpu(found):
        return Check("GPU", True, ", ".join(gpus), needed=False)
    advice = (
        "Its CUDA libraries do not load; run with TF_CPP_MIN_LOG_LEVEL=0 to see which is missing."
        if found["cuda"]
        else "This TensorFlow has no CUDA support; install requirements-gpu.txt."
    )
    if found["cuda"] and importlib.util.find_spec("nvidia") is None:
        advice = "Install the CUDA libraries: pip install 'tensorflow[and-cuda]' (requirements-gpu.txt)."
    return Check("GPU", False, f"{', '.join(gpus)}, but TensorFlow does not see it", advice, needed=False)


def _check_cupti(found: dict[str, Any]) -> Check:
    if found["gpu_traced"]:
        return Check("CUPTI", True, "a test recording contains GPU events", needed=False)
    return Check(
        "CUPTI",
        False,
        "a test recording contains no GPU events, so idle gaps are inferred from the host",
        "Check that libcupti loads, and that no other profiler holds the GPU; in containers the driver may restrict "
        "profiling to administrators (NVreg_RestrictProfilingToAdminUsers=0).",
        needed=False,
    )


def _sees_gpu(found: dict[str, Any]) -> bool:
    return any(device.startswith("GPU") for device in found["devices"])


def _is_writable(folder: Path) -> bool:
    existing = next(path for path in (folder, *folder.parents) if path.is_dir())
    return os.access(existing, os.W_OK)


def _check_images() -> Check:
    from pipeline_lab.report.renderers.chart_images import image_support

    missing = image_support()
    if missing is None:
        return Check("Charts as PNG and SVG", True, "rendered by kaleido", needed=False)
    return Check("Charts as PNG and SVG", False, "only from the HTML report", missing.reason, needed=False)


def doctor(as_json: JsonOption = False, store: StoreOption = None) -> None:
    """Check Python, TensorFlow, GPU, profiler, disk and store, and advise on what does not work."""
    from pipeline_lab.runs.store import open_store

    found = list(quick_checks(open_store(store)))
    with messages().status("Starting TensorFlow; this takes a few seconds …"):
        found += tensorflow_checks(probe_tensorflow, find_gpus())
    if as_json:
        print_json([check.to_json() for check in found])
    else:
        results().print(_table(found))
    if any(check.needed and not check.works for check in found):
        raise typer.Exit(1)


def _table(checks: "list[Check]") -> Table:
    table = Table.grid(padding=(0, 2))
    for check in checks:
        mark = "[green]works[/]" if check.works else "[red]broken[/]" if check.needed else "[yellow]missing[/]"
        advice = f"\n→ {check.advice}" if check.advice else ""
        table.add_row(mark, Text(check.name, style="bold"), Text(check.found + advice))
    return table
