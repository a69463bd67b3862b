"""What a machine of a Ray cluster does for a search; runs inside a Ray task, and knows nothing of Ray.

A trial's run is written to its own folder there and comes back as an archive, so machines need no shared disk. The
supervisor is a child of the task and dies with it, and the worker with the supervisor: a task that is killed leaves no
job behind that would disturb the next one. Several trials may share a machine with several GPUs.
"""

import contextlib
import io
import platform
import shutil
import subprocess
import tempfile
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipeline_lab.data_classes import dataclass
from pipeline_lab.folders import runtime_folder
from pipeline_lab.options.race_options import RaceOptions, is_script_race, read_race_options, read_script_race
from pipeline_lab.options.run_options import RunOptions, read_options
from pipeline_lab.runs.launch.launcher import create_run
from pipeline_lab.runs.launch.runtime import child_environment, die_with_parent, module_command
from pipeline_lab.runs.machine.limits import core_numbers, keep_to_cores
from pipeline_lab.runs.run_folder import RunFolder, read_record
from pipeline_lab.runs.store import RunStore
from pipeline_lab.tuning.executors.executor import MachineSetup, ScriptFiles, describe_machine, failure_of, took_s


@dataclass(frozen=True)
class Node:
    """A machine of a cluster with what it has to give."""

    node_id: str
    cpus: float
    gpus: float


@dataclass(frozen=True)
class Slot:
    """Where one trial is measured at a time.

    Attributes:
        node_id: The machine.
        number, of: Which of how many shares of it.
        cpus, gpus: What the share holds.
    """

    node_id: str
    number: int
    of: int
    cpus: float
    gpus: float


def find_slots(nodes: Sequence[Node], gpus_per_trial: int | None) -> list[Slot]:
    """Divide machines up.

    Args:
        nodes: All machines.
        gpus_per_trial: GPUs that a trial is given, with as large a share of the machine's cores; machines that have fewer
            measure nothing. None for whole machines, which is also what machines are where none has a GPU.
    """
    if gpus_per_trial is None or not any(node.gpus for node in nodes):
        return [Slot(node.node_id, 0, 1, node.cpus, node.gpus) for node in nodes]
    return [
        Slot(node.node_id, number, shares, float(node.cpus // shares), float(gpus_per_trial))
        for node in nodes
        for shares in [int(min(node.gpus // gpus_per_trial, max(1.0, node.cpus)))]
        for number in range(shares)
    ]


def share_of(cores: Sequence[int], number: int, of: int) -> list[int]:
    """Return the cores of one share, neighbors all; what cannot be divided is left idle."""
    each = len(cores) // of
    return sorted(cores)[number * each : (number + 1) * each] if each else sorted(cores)


FOLDER_PREFIX = "pipeline-lab-trial-"
STALE_S = 24 * 3600.0


@dataclass(frozen=True)
class TrialAnswer:
    """A trial that was measured.

    Attributes:
        run_id: Name of the run's folder.
        archive: The folder, as tar.
        machine: Name of the host.
        seconds: From its turn to its end.
        failure: Why it did not end as planned, or empty.
    """

    run_id: str
    archive: bytes
    machine: str
    seconds: float
    failure: str


def look(document: dict[str, Any]) -> MachineSetup:
    """Say what this machine has; called on each before the first trial."""
    return describe_machine(ScriptFiles(**document) if "digests" in document else read_options(document))


def measure(document: dict[str, Any], number: int = 0, of: int = 1) -> TrialAnswer:
    """Bring a run, or a race, to its end on this machine.

    Args:
        document: Its options.
        number, of: Which share of the machine it gets: its own queue and its own cores.
    """
    runtime = runtime_folder() if of == 1 else _share_of_runtime(number)
    cores = share_of(core_numbers(), number, of)
    die = die_with_parent()

    def keep_to_share() -> None:
        die()
        keep_to_cores(cores)

    sweep()
    with tempfile.TemporaryDirectory(prefix=FOLDER_PREFIX) as place:
        folder = create(RunStore(Path(place)), document)
        process = subprocess.Popen(
            module_command("pipeline_lab.runs.launch.supervisor", str(folder.path)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=child_environment() | {"PIPELINE_LAB_RUNTIME": str(runtime)},
            start_new_session=True,
            preexec_fn=keep_to_share,
        )
        try:
            process.wait()
        finally:
            process.kill()
        record = read_record(folder)
        return TrialAnswer(folder.id, pack(folder), platform.node(), took_s(record), failure_of(record))


def _share_of_runtime(number: int) -> Path:
    """Return the folder for the locks of one share: it does not wait for other trials on this machine."""
    folder = runtime_folder() / f"share-{number}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def sweep() -> None:
    """Remove what killed tasks left here; a folder without a change for a day is abandoned."""
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*"):
        with contextlib.suppress(OSError):  # gone by now, or another user's
            if time.time() - _last_change_s(folder) > STALE_S:
                shutil.rmtree(folder, ignore_errors=True)


def _last_change_s(folder: Path) -> float:
    return max(path.lstat().st_mtime for path in (folder, *folder.glob("*"), *folder.glob("*/*")))


def pack(folder: RunFolder) -> bytes:
    """Return a run's folder as an archive, without what is only there while it works."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for path in sorted(folder.path.rglob("*")):
            place = path.relative_to(folder.path)
            if folder.scratch.name not in place.parts:
                archive.write(path, folder.id / place)
    return buffer.getvalue()


def unpack(archive: bytes, store: RunStore, run_id: str) -> RunFolder:
    """Put a run that came from another machine into a store, whole or not at all."""
    store.arrivals.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=store.arrivals) as place:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:  # Python 3.11.3 and older unpack no tar safely
            opened.extractall(place)
        target = store.root / run_id
        (Path(place) / run_id).rename(target)
    return RunFolder(target)


def create(store: RunStore, document: dict[str, Any]) -> RunFolder:
    """Create the run of a trial: a job's, a race's, or that of a race inside a script."""
    if is_script_race(document):
        return create_run(store, read_script_race(document))
    if document.get("kind") == RaceOptions.model_fields["kind"].default:
        return create_run(store, read_race_options(document))
    options: RunOptions = read_options(document)
    return create_run(store, options)
