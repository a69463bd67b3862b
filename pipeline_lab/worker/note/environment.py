"""Describe the machine and the software of a run, for ``run.json``."""

import os
import platform
import re
import socket
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from pipeline_lab.runs.launch.runtime import wants_keras_2
from pipeline_lab.runs.machine.limits import usable_cores, usable_memory_bytes
from pipeline_lab.version import __version__


def describe_environment() -> dict[str, Any]:
    """Describe the machine and the software, but for the devices, which only the job may list."""
    return {
        "host": socket.gethostname(),
        "platform": platform.platform(),
        "cpu": _cpu_name(),
        "cores": usable_cores(),
        "machine_cores": os.cpu_count(),
        "memory_bytes": usable_memory_bytes(),
        "python": platform.python_version(),
        "tensorflow": _version("tensorflow"),
        "keras": _version("tf_keras" if wants_keras_2() else "keras"),
        "numpy": _version("numpy"),
        "pipeline_lab": __version__,
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def _cpu_name() -> str:
    try:
        match = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        match = None
    return match[1] if match else platform.machine()
