"""What every executor does: bring trials to their end, each on one machine, and their runs into one store.

Before the first trial every machine is asked whether it has the same code and sees the data.
"""

import glob
import hashlib
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Protocol

from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import DataError, PipelineLabError
from pipeline_lab.options.race_options import AnyRace
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.runs.record import RunRecord, RunState
from pipeline_lab.version import __version__


class SearchStoppedError(PipelineLabError):
    """The search was asked to stop; what it found so far is kept."""


@dataclass(frozen=True)
class Finished:
    """A trial that is over.

    Attributes:
        run_id: Its run, in the store of the search.
        machine: Name of the host that measured it.
        seconds: From its start to its end.
        failure: Why it did not end as planned, as one sentence; empty for one that did.
    """

    run_id: str
    machine: str
    seconds: float
    failure: str = ""


@dataclass(frozen=True)
class Trial:
    """Something to measure.

    Attributes:
        key: Tells it from every other trial of the search.
        options: A run, or a race.
        begun_as: The run that an earlier process of the search began for it; None for one that is new.
    """

    key: str
    options: RunOptions | AnyRace
    begun_as: str | None = None


class Watch(Protocol):
    """Hears what becomes of trials."""

    def should_stop(self) -> bool:
        """Say whether to stop everything; called repeatedly."""
        ...

    def begun(self, trial: Trial, run_id: str) -> None:
        """A run of the store holds the trial from now on, so that readers can follow it."""
        ...

    def ended(self, trial: Trial, finished: Finished) -> None:
        """The trial is over and its run is in the store."""
        ...


class Executor(Protocol):
    """Measures runs and races. All arms of a race stay on one machine; a machine measures one trial at a time.

    Those that there are also do tasks that need no machine to themselves: ``spread``, as
    :class:`pipeline_lab.analysis.diagnosis.executors.TraceExecutor` has it.
    """

    @property
    def machines(self) -> int:
        """How many trials can be measured at the same time."""
        ...

    def check(self, needed: "RunOptions | ScriptFiles") -> None:
        """Make sure that every machine has the code and the data before anything is measured.

        Args:
            needed: What is to be measured, or the files of the script that is.

        Raises:
            PipelineLabError: One has not; the text says which and what is missing.
        """
        ...

    def run(self, trials: Sequence[Trial], watch: Watch) -> None:
        """Bring trials to their end, and tell the watch of each.

        Raises:
            SearchStoppedError: The watch asked to stop; trials under way are canceled.
        """
        ...

    def close(self) -> None:
        """Give everything back."""
        ...


def took_s(record: RunRecord) -> float:
    """Return how long a run that is over took, from its turn to its end, s."""
    status = record.status
    return max(0.0, (status.ended_s or 0.0) - (status.started_s or status.ended_s or 0.0))


def failure_of(record: RunRecord) -> str:
    """Return why a run did not end as planned, or an empty text."""
    if record.status.state is RunState.DONE:
        return ""
    return record.status.reason or f"It was {record.status.state.label}."


class MachinesDifferError(PipelineLabError):
    """Machines of a cluster do not have the same code or data."""


@dataclass(frozen=True)
class ScriptFiles:
    """The user's files that a script runs.

    Attributes:
        digests: Of their bytes, by path.
    """

    digests: Mapping[str, str]

    @classmethod
    def here(cls, paths: Iterable[str]) -> "ScriptFiles":
        """Return the files as this machine has them; those that cannot be read are left out."""
        return cls({path: digest for path in paths if (digest := _digest(path))})


@dataclass(frozen=True)
class MachineSetup:
    """What one machine has.

    Attributes:
        name: Of the host.
        python: Version, such as ``3.11``.
        lab: Version of Pipeline Lab.
        tensorflow: Its version; empty where it is not installed.
        missing: A pattern of the user's files that matches nothing there, or their folder, or a file of theirs that is not there; else
            empty.
        differs: A file of a script that holds something else there; else empty.
    """

    name: str
    python: str
    lab: str
    tensorflow: str
    missing: str
    differs: str = ""

    @property
    def code(self) -> tuple[str, str, str]:
        """What must be the same everywhere for times to compare."""
        return (self.python, self.lab, self.tensorflow)


def describe_machine(needed: RunOptions | ScriptFiles) -> MachineSetup:
    """Say what this machine has; data that the lab makes itself is made where it is missing."""
    major, minor = sys.version_info[:2]
    missing, differs = (_missing(needed), "") if isinstance(needed, RunOptions) else _compare_files(needed)
    return MachineSetup(platform.node(), f"{major}.{minor}", __version__, _tensorflow_version(), missing, differs)


def check_machines(here: MachineSetup, machines: tuple[MachineSetup, ...]) -> None:
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
        if machine.differs:
            raise MachinesDifferError(
                f"{machine.differs!r} holds something else on {machine.name} than on {here.name}; copy it there, or share the folder."
            )
        if machine.code != here.code:
            raise MachinesDifferError(
                f"{machine.name} has {_code(machine)}, but {here.name} has {_code(here)}; install the same everywhere."
            )


def _missing(options: RunOptions) -> str:
    """Return the user's files that this machine does not see; empty if it sees some, or none are requested."""
    workload = options.workload
    pattern, folder = workload.users_pattern, workload.users_folder
    if pattern and not glob.glob(pattern):  # noqa: PTH207, Path.glob takes no absolute pattern
        return pattern
    return folder if folder and not Path(folder).expanduser().is_dir() else ""


def _compare_files(needed: ScriptFiles) -> tuple[str, str]:
    """Return the first file that this machine does not have, and the first that holds something else here; else empty."""
    found = {path: _digest(path) for path in needed.digests}
    missing = next((path for path, digest in found.items() if not digest), "")
    return missing, next((path for path, digest in found.items() if digest and digest != needed.digests[path]), "")


def _digest(path: str) -> str:
    try:
        return hashlib.blake2b(Path(path).read_bytes(), digest_size=16).hexdigest()
    except OSError:
        return ""


def _code(machine: MachineSetup) -> str:
    return f"Python {machine.python}, Pipeline Lab {machine.lab} and TensorFlow {machine.tensorflow or 'none'}"


def _tensorflow_version() -> str:
    try:
        return version("tensorflow")
    except PackageNotFoundError:
        return ""
