"""The run store: a folder of run folders, and at the same time a TensorBoard log directory.

Importing it does not load pydantic.
"""

import contextlib
import os
import re
import secrets
import shlex
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from pipeline_lab.errors import ComparisonError, StoreError, TraceReadError, did_you_mean
from pipeline_lab.runs.launch.queue import runs_before
from pipeline_lab.runs.listing import UnreadableRun, list_runs
from pipeline_lab.runs.record import GONE, ListedRun, NewerRecordError, RunKind, RunRecord, RunState, RunStatus
from pipeline_lab.runs.run_folder import RECORD, RunFolder, end_run, read_record, update_record, write_record

if TYPE_CHECKING:
    from pipeline_lab.options.race_options import AnyRace
    from pipeline_lab.options.run_options import RunOptions
    from pipeline_lab.options.tune_options import SearchRules


SAMPLES_NAME = "samples"
RESERVE_BYTES = 64 * 1024


class RunStore:
    """All runs of one folder.

    Runs are listed newest first; the bundled samples, if given, come last and are read-only. A store with a reason in
    ``locked`` is read-only as a whole.
    """

    def __init__(self, root: Path, samples: Path | None = None, locked: str = "") -> None:
        self.root = root
        self.samples = samples if samples is not None and samples.is_dir() else None
        self.locked = locked

    def check_unlocked(self) -> None:
        """Refuse to change a locked store.

        Raises:
            StoreError: The store is locked.
        """
        if self.locked:
            raise StoreError(self.locked)

    @property
    def arrivals(self) -> Path:
        """Where uploads are received; on the disk of the runs, so that one rename makes them a run."""
        return self.root / ".arrivals"

    @property
    def presets(self) -> Path:
        """Folder of saved presets, one file of options each."""
        return self.root / ".presets"

    def folder(self, run_id: str) -> RunFolder:
        """Return the folder of a run.

        Raises:
            StoreError: There is no such run, or the id is not a plain folder name.
        """
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}", run_id):
            raise StoreError(
                f"{run_id[:80]!r} is not a run id; `pipeline-lab runs list` and the Runs page show the ids."
            )
        for root in filter(None, (self.root, self.samples)):
            if (root / run_id / RECORD).is_file():
                return RunFolder(root / run_id)
        raise StoreError(
            f"There is no run {run_id!r} in {self.root}; `pipeline-lab runs list` and the Runs page show the runs."
        )

    def find_id(self, word: str, kind: RunKind | None = None) -> str:
        """Return the id of the run that a user names: by its id, by a name that no other run has, or as the ``latest``.

        Args:
            word: The name.
            kind: Of the latest; None for a run of any kind.

        Returns:
            The word itself where it names no run.

        Raises:
            StoreError: Several runs have that name, or there is no latest run yet.
        """
        with contextlib.suppress(StoreError):
            return self.folder(word).id
        own = [record for record in self.runs() if not self.is_sample(record.id)]
        if word == LATEST:
            return self._latest([record for record in own if kind in (None, record.kind)], kind)
        named = [record.id for record in own if record.name == word]
        if len(named) > 1:
            raise StoreError(
                f"{len(named)} runs are called {word[:80]!r}: {', '.join(named[:5])}{', …' * (len(named) > 5)}; name one by its "
                f"id, or write {LATEST} for the newest run of all."
            )
        return named[0] if named else word

    def _latest(self, records: list[ListedRun], kind: RunKind | None) -> str:
        if records:
            return records[0].id
        if kind is RunKind.TUNE:
            raise StoreError(
                f"There is no {LATEST} search: {self.root} holds none yet; `pipeline-lab fix` or `tune` begins one."
            )
        raise StoreError(f"There is no {LATEST} run: {self.root} holds none yet; `pipeline-lab run` records one.")

    def read(self, run_id: str) -> RunRecord:
        """Return a run's record; a run whose supervisor vanished reads as lost.

        Raises:
            StoreError: There is no such run, or its record is damaged.
        """
        return read_record(self.folder(run_id))

    def runs(self) -> list[ListedRun]:
        """Return every readable run, newest first, the samples last."""
        return self.survey()[0]

    def survey(self) -> tuple[list[ListedRun], list[UnreadableRun]]:
        """Return every readable run, newest first, the samples last, and the entries that cannot be read, by name."""
        own, unreadable = list_runs(self.root)
        own.sort(key=lambda record: (record.status.created_s, record.id), reverse=True)
        return own + self.bundled(), unreadable

    def bundled(self) -> list[ListedRun]:
        """Return the samples, by id; a run of the store's own goes before one of the same id."""
        found = sorted(list_runs(self.samples)[0], key=lambda record: record.id)
        return [record for record in found if self.is_sample(record.id)]

    def is_sample(self, run_id: str) -> bool:
        """Say whether a run is bundled; one of the store's own goes before it."""
        return run_id in self._sample_ids and not (self.root / run_id / RECORD).is_file()

    @cached_property
    def _sample_ids(self) -> frozenset[str]:
        """Ids of the samples, which do not change while the lab runs."""
        folders = self.samples.iterdir() if self.samples else ()
        return frozenset(each.name for each in folders if (each / RECORD).is_file())

    def create(
        self,
        options: "RunOptions | AnyRace | SearchRules",
        source: str,
        write_more: Callable[[RunFolder], None] = lambda _: None,
    ) -> RunFolder:
        """Make the folder of a new run, race or search, in state queued.

        Args:
            options: Of the run.
            source: Of its pipeline; a race's is that of its baseline, a search's that of the best it knows.
            write_more: Writes what else belongs to a new folder.

        Raises:
            StoreError: The store is locked or cannot be written, or the disk is full.
        """

        def write(folder: RunFolder) -> None:
            folder.reserve.write_bytes(b"\0" * RESERVE_BYTES)
            folder.source.write_text(source, encoding="utf-8")
            write_more(folder)

        status = RunStatus(RunState.QUEUED, created_s=time.time())
        return self.add(RunRecord("", options.label, status, options=options.model_dump(mode="json")), write)

    def add(self, record: RunRecord, write: Callable[[RunFolder], None] = lambda _: None) -> RunFolder:
        """Make the folder of a new run; it is removed again if something cannot be written.

        Args:
            record: Of the run, without its id.
            write: Writes what must be there before the record, which makes the folder a run.

        Raises:
            StoreError: The store is locked or cannot be written, or the disk is full.
        """
        self.check_unlocked()
        if (self.root / RECORD).is_file():
            raise StoreError(f"{self.root} is a run and not a store; name the folder that holds the runs.")
        self._sweep()
        folder = RunFolder(self.root / new_id(record.name, record.status.created_s))
        try:
            folder.path.mkdir(parents=True)
            write(folder)
            write_record(folder, replace(record, id=folder.id))
        except BaseException as error:
            shutil.rmtree(folder.path, ignore_errors=True)
            if isinstance(error, OSError):
                raise StoreError(
                    f"Cannot write to the run store {self.root} ({error.strerror}); free some space, or choose another "
                    "one with --store or PIPELINE_LAB_STORE."
                ) from None
            raise
        return folder

    def update(self, run_id: str, change: Callable[[RunRecord], RunRecord]) -> RunRecord:
        """Change a run's record under its lock and return the new one.

        Raises:
            StoreError: The store is locked, the run is a bundled sample, or it cannot be written.
        """
        return update_record(self._own(run_id, "changed"), change)

    def rename(self, run_id: str, name: str) -> RunRecord:
        return self.update(run_id, lambda record: replace(record, name=name.strip()[:200] or record.id))

    def tag(self, run_id: str, tags: tuple[str, ...]) -> RunRecord:
        parts = (part.strip() for tag in tags for part in tag.split(","))  # lists separate tags by commas
        clean = tuple(dict.fromkeys(part[:40] for part in parts if part))
        return self.update(run_id, lambda record: replace(record, tags=clean))

    def remove(self, run_id: str, *, even_if_newer: bool = False) -> None:
        """Delete a run that is over.

        Args:
            run_id: Of the run.
            even_if_newer: Delete it although a newer Pipeline Lab wrote it, whose state this one cannot read.

        Raises:
            StoreError: The store is locked, or the run is a bundled sample, still running, or newer.
        """
        folder = self._own(run_id, "deleted")
        if _is_live(folder, even_if_newer) or runs_before(run_id) is not None:
            raise StoreError(f"Run {run_id} is still running; cancel it first.")
        doomed = self.root / f".deleted-{run_id}-{secrets.token_hex(4)}"
        try:
            folder.path.rename(doomed)
            shutil.rmtree(doomed)
        except OSError as error:
            raise StoreError(f"Cannot delete run {run_id}: {error.strerror}.") from None

    def _sweep(self) -> None:
        """Delete what killed processes left: half-deleted runs, and temporary files of runs whose process is gone."""
        with contextlib.suppress(OSError):
            for doomed in self.root.glob(".deleted-*"):
                shutil.rmtree(doomed, ignore_errors=True)
        for record in list_runs(self.root)[0]:
            if record.status.state is RunState.LOST and record.status.reason == GONE:
                folder = RunFolder(self.root / record.id)
                end_run(folder, RunState.LOST, GONE)
                shutil.rmtree(folder.scratch, ignore_errors=True)

    def _own(self, run_id: str, verb: str) -> RunFolder:
        self.check_unlocked()
        folder = self.folder(run_id)
        if self.samples is not None and folder.path.parent == self.samples:
            raise StoreError(f"{run_id} is a bundled sample and cannot be {verb}.")
        return folder


def open_store(root: Path | None = None, *, locked: str = "") -> RunStore:
    """Open the store that the user means, locked if a reason is given.

    The first of: ``root``, ``PIPELINE_LAB_STORE``, ``./profiles`` where it exists, the user's data folder.
    The bundled samples are listed with it.

    Raises:
        StoreError: What was named cannot be a path.
    """
    named = root or (Path(value) if (value := os.environ.get("PIPELINE_LAB_STORE")) else None)
    local = Path("profiles")
    chosen = named or (local if local.is_dir() else platformdirs.user_data_path("pipeline-lab") / "profiles")
    try:
        chosen.stat()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        pass  # whoever writes makes it, or says why not
    except (OSError, ValueError):  # too long, or with a zero byte
        raise StoreError(f"{str(chosen)[:80]!r} cannot be a folder; name the one that holds the runs.") from None
    return RunStore(chosen.absolute(), samples_folder(), locked)


def find_store(root: Path | None = None) -> RunStore:
    """Open the store that the user means, to read it.

    Raises:
        StoreError: The folder that the user named does not exist.
    """
    store = open_store(root)
    if root is not None and not root.is_dir():
        raise StoreError(f"The folder {root} does not exist; name the folder that holds the runs with --store.")
    return store


def samples_folder() -> Path | None:
    """Return the folder of the bundled sample runs, in a checkout or in an installed package."""
    package = Path(__file__).resolve().parents[1]
    for candidate in (package / "samples", package.parent / "profiles" / SAMPLES_NAME):
        if candidate.is_dir():
            return candidate
    return None


def _is_live(folder: RunFolder, even_if_newer: bool) -> bool:
    try:
        return read_record(folder).status.state.is_live
    except NewerRecordError as error:
        if not even_if_newer:
            raise StoreError(
                f"{error} To delete it all the same: `pipeline-lab runs rm --force {folder.id}`."
            ) from None
        return False
    except StoreError:  # a damaged record
        return False


def describe_unreadable(unreadable: list[UnreadableRun]) -> str:
    """Say in one sentence which entries of a store cannot be read, and why the first one cannot; empty if all can."""
    if not unreadable:
        return ""
    names = ", ".join(one.id for one in unreadable[:_NAMED]) + (", …" if len(unreadable) > _NAMED else "")
    count = "1 run" if len(unreadable) == 1 else f"{len(unreadable)} runs"
    reason = (
        unreadable[0].reason
        if len({one.reason for one in unreadable}) == 1
        else f"{unreadable[0].id}: {unreadable[0].reason}"
    )
    return f"{count} cannot be read: {names}. {reason}"


_NAMED = 5


def new_id(name: str, now_s: float) -> str:
    """Return a folder name for a run: its moment, its name in plain letters, and something that makes it unique."""
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40] or "run"
    return f"{time.strftime('%Y%m%d-%H%M%S', time.localtime(now_s))}-{slug}-{secrets.token_hex(2)}"


LONGEST_NAME = 200
"""Longer text is not a mistyped run id."""
LATEST = "latest"
"""Names the newest run."""


def name_of(path: Path) -> str:
    """Return the shortest text by which :func:`find_path` finds a run: its id where the usual store has it, else its path."""
    with contextlib.suppress(StoreError):
        if open_store().folder(path.name).path == path:
            return path.name
    return str(path)


def store_option(path: Path) -> str:
    """Return the option, with a space behind it, by which a command finds the store of a run; empty for the usual store."""
    usual = open_store()
    return "" if path.parent in (usual.root, usual.samples) else f"--store {shlex.quote(str(path.parent))} "


def find_path(what: str | PathLike[str], store: RunStore | Path | None = None, kind: RunKind | None = None) -> Path:
    """Return the absolute path of a file, a folder, or the run of that id; ``kind`` as for :meth:`RunStore.find_id`.

    Raises:
        TraceReadError: Nothing matches.
    """
    with contextlib.suppress(OSError, ValueError):  # too long for a name, or below a folder that is closed to us
        if str(what) and Path(what).exists():  # an empty name would be the folder that one is in
            return Path(what).absolute()
    opened = store if isinstance(store, RunStore) else find_store(store)
    name = opened.find_id(str(what), kind)
    try:
        return opened.folder(name).path
    except StoreError:
        offer = did_you_mean(name, (run.id for run in opened.runs())) if len(name) < LONGEST_NAME else ""
        raise TraceReadError(
            f"There is no file or folder {name[:LONGEST_NAME]!r}, and no run of that id in {opened.root}; "
            f"`pipeline-lab runs list` and the Runs page show the runs.{offer}"
        ) from None


def check_is_one(path: Path) -> None:
    """Refuse the folder of a race or a search.

    Raises:
        ComparisonError: It is one.
    """
    folder = RunFolder(path)
    kind = read_record(folder).kind if folder.record.is_file() else None
    if kind is RunKind.RACE:
        raise ComparisonError(refuse_race(folder.id))
    if kind is RunKind.TUNE:
        raise ComparisonError(
            f"{folder.id} is a search, whose trials are separate runs and races: `pipeline-lab report {folder.id}` "
            "lists them."
        )


def refuse_race(race_id: str) -> str:
    return f"{race_id} is a race, which contains its comparison: `pipeline-lab report {race_id}`."
