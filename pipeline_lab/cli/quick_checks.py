"""What ``pipeline-lab doctor`` checks without a TensorFlow process: Python, packages, disk, store, browser."""

import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from pipeline_lab.cli.checks import Check
from pipeline_lab.errors import PipelineLabError
from pipeline_lab.units import format_bytes

if TYPE_CHECKING:
    from pipeline_lab.runs.store import RunStore

PYTHON_VERSIONS = ((3, 11), (3, 13))
LOW_DISK_BYTES = 2 * 10**9
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


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
    package = Path(__file__).parents[1] / "trace"
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


def _is_writable(folder: Path) -> bool:
    existing = next(path for path in (folder, *folder.parents) if path.is_dir())
    return os.access(existing, os.W_OK)


def _check_images() -> Check:
    from pipeline_lab.report.renderers.chart_images import image_support

    missing = image_support()
    if missing is None:
        return Check("Charts as PNG and SVG", True, "rendered by kaleido", needed=False)
    return Check("Charts as PNG and SVG", False, "only from the HTML report", missing.reason, needed=False)
