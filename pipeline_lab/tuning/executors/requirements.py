"""What a machine must have before it can measure a pipeline: asked of each before the first trial starts."""

import glob
import platform
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pipeline_lab.errors import DataError, PipelineLabError
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.version import __version__
from pipeline_lab.workloads.audio import AudioWorkload
from pipeline_lab.workloads.images import ImagesWorkload


class MachinesDifferError(PipelineLabError):
    """Machines of a cluster do not have the same code or data."""


@dataclass(frozen=True)
class Machine:
    """What one machine has.

    Attributes:
        name: Of the host.
        python: Version, such as ``3.11``.
        lab: Version of Pipeline Lab.
        tensorflow: Its version; empty where it is not installed.
        missing: A pattern of the user's files that matches nothing there, or their folder that is not there; else empty.
    """

    name: str
    python: str
    lab: str
    tensorflow: str
    missing: str

    @property
    def code(self) -> tuple[str, str, str]:
        """What must be the same everywhere for times to compare."""
        return (self.python, self.lab, self.tensorflow)


def describe_machine(options: RunOptions) -> Machine:
    """Say what this machine has; data that the lab makes itself is made where it is missing."""
    major, minor = sys.version_info[:2]
    return Machine(platform.node(), f"{major}.{minor}", __version__, _tensorflow_version(), _missing(options))


def check_machines(here: Machine, machines: tuple[Machine, ...]) -> None:
    """Compare machines with the one that conducts the search.

    Raises:
        DataError: One does not see the user's files.
        MachinesDifferError: One has another version of something that times depend on.
    """
    for machine in machines:
        if machine.missing:
            raise DataError(
                f"There is no {machine.missing!r} on {machine.name}; every machine must see the data under the same path."
            )
        if machine.code != here.code:
            raise MachinesDifferError(
                f"{machine.name} has {_code(machine)}, but {here.name} has {_code(here)}; install the same everywhere."
            )


def _missing(options: RunOptions) -> str:
    """Return the user's files that this machine does not see; empty where it sees some, or none are asked for."""
    workload = options.workload
    pattern = getattr(workload, "pattern", None)
    if pattern and not glob.glob(pattern):  # noqa: PTH207, Path.glob takes no absolute pattern
        return str(pattern)
    folder = workload.folder if isinstance(workload, AudioWorkload | ImagesWorkload) else None
    return folder if folder and not Path(folder).expanduser().is_dir() else ""


def _code(machine: Machine) -> str:
    return f"Python {machine.python}, Pipeline Lab {machine.lab} and TensorFlow {machine.tensorflow or 'none'}"


def _tensorflow_version() -> str:
    try:
        return version("tensorflow")
    except PackageNotFoundError:
        return ""
