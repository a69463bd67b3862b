"""Diagnoses kept on disk, so that a second look is instant.

A run's diagnosis lies in its own ``analysis`` folder, any other log's (and that of a run that cannot be written) in the
user's cache. It is fresh while the fingerprint of its inputs (names, sizes and times of change) and
:data:`ANALYSIS_VERSION` are the same; a stale or damaged one reads as missing. The bundled samples ship with theirs: it
names the contents of its inputs, so that it holds wherever the samples lie, and its folder is never written to.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from pipeline_lab.analysis.diagnosis.executors import TraceExecutor, in_turn
from pipeline_lab.analysis.diagnosis.inputs import Progress, WindowList, is_run, opened_files, version_of, window_files
from pipeline_lab.analysis.diagnosis.storage import Kinds, read_result, write_json, write_result
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import TraceReadError
from pipeline_lab.folders import cache_folder, files_below
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.run_tables import RUN_TABLES
from pipeline_lab.runs.store import samples_folder

if TYPE_CHECKING:
    from pipeline_lab.analysis.diagnosis.table_files import TableFiles
    from pipeline_lab.analysis.results import Diagnosis

Result = TypeVar("Result")

ANALYSIS_VERSION = 83
"""Raised whenever the same inputs may give another diagnosis."""

DOCUMENT = "diagnosis.json"
"""Name of the file that holds a diagnosis."""
_ERROR = "error.txt"
_PROGRESS = "progress.json"
_TIMELINE, _UNFINISHED = "timeline-", "making-"
_LOCK = ".lock"


@dataclass(frozen=True)
class AnalysisProgress:
    """How far an analysis has come: traces done, traces in all, the name of the next one."""

    done: int
    total: int
    name: str


class SavedDiagnosis:
    """The place on disk that belongs to one run or log.

    Args:
        path: What is diagnosed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._folders = _folders(self.path)
        self._files: TableFiles | None = None
        self._written = ""

    def load(self) -> "Diagnosis | None":
        """Return the saved diagnosis if its inputs are still the same, else None."""
        return self._load(fingerprint_inputs(self.path))

    def load_latest(self) -> "Diagnosis | None":
        """Return whatever was saved last, for a run in progress; None if nothing was, or it cannot be read."""
        return self._load(None)

    @property
    def is_fresh(self) -> bool:
        """Say whether the saved diagnosis is whole, and the one that the inputs would give now."""
        return self.load() is not None

    @property
    def saved_ns(self) -> int | None:
        """When a diagnosis was saved last, fresh or not; None if none was."""
        for folder in self._folders:
            with contextlib.suppress(OSError):
                return (folder / DOCUMENT).stat().st_mtime_ns
        return None

    @property
    def error(self) -> str | None:
        """Why the last attempt failed, as one sentence."""
        return self._read_text(_ERROR)

    @property
    def progress(self) -> AnalysisProgress | None:
        """How far an analysis under way has come."""
        text = self._read_text(_PROGRESS)
        try:
            return AnalysisProgress(**json.loads(text)) if text else None
        except (ValueError, TypeError):
            return None

    def save(self, diagnosis: "Diagnosis", inputs: str) -> None:
        """Keep a diagnosis, and the tables of the one before it for readers that hold its document; of growing tables only what is new is written.

        Args:
            diagnosis: What was found.
            inputs: The :func:`fingerprint_inputs`, taken before the inputs were read.
        """
        files, before = self._table_files()
        folder = files.folder.parent
        content = write_result(diagnosis, files.folder, files)
        write_json(folder / DOCUMENT, _document(diagnosis, {"fingerprint": inputs}, files.folder, content))
        self._written = version_of(os.fspath(folder / DOCUMENT))
        files.end_result()
        (folder / _ERROR).unlink(missing_ok=True)
        for old in folder.glob("tables-*"):
            if old.name not in (files.folder.name, before):
                shutil.rmtree(old, ignore_errors=True)

    def _table_files(self) -> "tuple[TableFiles, str | None]":
        """Return what writes tables, and the name of the folder with those of the last document, which is the same if nobody else saved since."""
        ours = None if self._files is None else self._files.folder
        if self._files and ours and ours.is_dir() and self._written == version_of(os.fspath(ours.parent / DOCUMENT)):
            return self._files, ours.name
        from pipeline_lab.analysis.diagnosis.table_files import TableFiles  # loads Arrow

        folder = self._writable()
        self._files = TableFiles(Path(tempfile.mkdtemp(prefix="tables-", dir=folder)))
        return self._files, _tables_of(folder / DOCUMENT)

    def load_beside(self, name: str, kind: type[Result], kinds: Kinds | None = None) -> Result | None:
        """Return what was saved beside the diagnosis under a name if its inputs are still the same, else None.

        Args:
            name: Of what was saved.
            kind: Its class.
            kinds: The classes in it, as :func:`read_result` takes them.
        """
        wanted = fingerprint_inputs(self.path)
        for folder, document in self._documents(f"{name}.json"):
            if self._is_shipped(document) or document.get("fingerprint") == wanted:
                with contextlib.suppress(ValueError, OSError, KeyError):
                    return read_result(document["result"], folder, kind, kinds)
        return None

    def save_beside(self, name: str, result: object, inputs: str) -> None:
        """Keep something that was made of the same inputs; ``inputs`` as for :meth:`save`."""
        folder = self._writable()
        document = {"version": ANALYSIS_VERSION, "fingerprint": inputs, "result": write_result(result, folder)}
        write_json(folder / f"{name}.json", document)
        (folder / _ERROR).unlink(missing_ok=True)

    @property
    def timeline(self) -> Path | None:
        """The folder of the timeline's index if its inputs are still the same, else None."""
        return self.find_timeline(timeline_name(fingerprint_inputs(self.path)))

    @property
    def latest_timeline(self) -> Path | None:
        """The folder of the index that was made last, fresh or not, for a run in progress; None if none was."""
        made = [path for folder in self._folders for path in folder.glob(f"{_TIMELINE}*")]
        return made[0] if made else None

    def find_timeline(self, name: str) -> Path | None:
        """Return the folder of the timeline's index of that name, fresh or not."""
        return next((folder / name for folder in self._folders if (folder / name).is_dir()), None)

    def save_timeline(self, build: Callable[[Path], None], inputs: str) -> None:
        """Keep a timeline's index in place of older ones.

        Args:
            build: Writes it into an empty folder.
            inputs: As for :meth:`save`.
        """
        folder = self._writable()
        made = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=folder))
        try:
            build(made)
            for old in folder.glob(f"{_TIMELINE}*"):
                shutil.rmtree(old, ignore_errors=True)
            made.rename(folder / timeline_name(inputs))
        finally:
            for left in folder.glob(f"{_UNFINISHED}*"):
                shutil.rmtree(left, ignore_errors=True)
        (folder / _ERROR).unlink(missing_ok=True)

    def save_error(self, sentence: str) -> None:
        (self._writable() / _ERROR).write_text(sentence + "\n", encoding="utf-8")

    def save_progress(self, done: int, total: int, name: str) -> None:
        write_json(self._writable() / _PROGRESS, {"done": done, "total": total, "name": name})

    def end_progress(self) -> None:
        (self._writable() / _PROGRESS).unlink(missing_ok=True)

    @contextlib.contextmanager
    def lock(self) -> Iterator[bool]:
        """Hold the place; yields False if another process does already."""
        with (self._writable() / _LOCK).open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True

    def _is_shipped(self, document: dict[str, Any]) -> bool:
        """Say whether a document came with a run, and was made of what is in it."""
        return "contents" in document and document["contents"] == digest_contents(self.path)

    def _load(self, wanted: str | None) -> "Diagnosis | None":
        for folder, document in self._documents():
            has_shipped = self._is_shipped(document)
            if wanted is None or has_shipped or document.get("fingerprint") == wanted:
                from pipeline_lab.analysis.results import Diagnosis  # with the classes of all results, Arrow and NumPy

                with contextlib.suppress(ValueError, OSError, KeyError, TypeError):
                    found = read_result(document["diagnosis"], folder / Path(document["tables"]).name, Diagnosis)
                    source = replace(found.source, path=str(self.path)) if has_shipped else found.source
                    return replace(found, source=source)
        return None

    def _documents(self, name: str = DOCUMENT) -> Iterator[tuple[Path, dict[str, Any]]]:
        for folder in self._folders:
            with contextlib.suppress(OSError, ValueError):
                document = json.loads((folder / name).read_text(encoding="utf-8"))
                if isinstance(document, dict) and document.get("version") == ANALYSIS_VERSION:
                    yield folder, document

    def _read_text(self, name: str) -> str | None:
        for folder in self._folders:
            with contextlib.suppress(OSError, UnicodeDecodeError):
                return (folder / name).read_text(encoding="utf-8").strip()
        return None

    def _writable(self) -> Path:
        """Return the first folder that can be written."""
        for folder in self._folders[:-1]:
            if _is_bundled(folder):
                continue
            with contextlib.suppress(OSError):
                folder.mkdir(exist_ok=True)
                if os.access(folder, os.W_OK):
                    return folder
        self._folders[-1].mkdir(parents=True, exist_ok=True)
        return self._folders[-1]


def _tables_of(document: Path) -> str | None:
    """Return the name of the folder with a document's tables; None without a document that can be read."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        return str(json.loads(document.read_text(encoding="utf-8"))["tables"])
    return None


WhileReading: TypeAlias = Callable[[str], AbstractContextManager[object]]
"""What is entered, with the name of a log, while its traces are read."""


def diagnose_saved(
    path: Path,
    *,
    progress: Progress | None = None,
    spread: TraceExecutor = in_turn,
    while_reading: WhileReading = contextlib.nullcontext,
) -> "Diagnosis":
    """Return the saved diagnosis, or make and save it.

    Args:
        path: What :func:`pipeline_lab.analysis.diagnosis.diagnose.diagnose` takes.
        progress: As there.
        spread: As there.
        while_reading: Entered if there is no saved diagnosis.

    Raises:
        TraceReadError: There is nothing that can be read as a trace, and no run either.
    """
    saved = SavedDiagnosis(path)
    found = saved.load() if path.exists() else None
    if found is not None:
        return found
    from pipeline_lab.analysis.diagnosis.reading import begun_ahead  # loads NumPy

    inputs = fingerprint_inputs(path) if path.exists() else ""
    with while_reading(path.name), begun_ahead(path):
        from pipeline_lab.analysis.diagnosis.diagnose import diagnose  # loads all analyses, and Arrow

        diagnosis = diagnose(path, progress=progress, spread=spread)
    with contextlib.suppress(OSError), saved.lock() as is_ours:  # a full disk does not keep the answer from being shown
        if is_ours:
            saved.save(diagnosis, inputs)
    return diagnosis


def fingerprint_inputs(path: Path, windows: WindowList | None = None) -> str:
    """Return what changes when an input of the diagnosis changes: names, sizes and times of change of its files.

    Args:
        path: A run or a log.
        windows: The trace files of a run, where somebody keeps looking at them.
    """
    path = path.absolute()
    if windows is None:
        windows = WindowList(RunFolder(path))
        windows.look()
    others = _noted(RunFolder(path)) if is_run(path) else _files_of_log(path)
    content = "".join([f"{ANALYSIS_VERSION}\0{path}", *sorted(version_of(os.fspath(file)) for file in others)])
    return hashlib.sha256(windows.digest() + os.fsencode(content)).hexdigest()


def bundle(diagnosis: "Diagnosis", path: Path, beside: Mapping[str, object]) -> None:
    """Keep a run's diagnosis beside it so that it holds wherever the run is copied to, and is never replaced there.

    Args:
        diagnosis: What was found.
        path: The run's folder, complete.
        beside: What was made of the same inputs, by name; without tables.
    """
    folder = RunFolder(path).analysis
    shutil.rmtree(folder, ignore_errors=True)
    tables = folder / "tables"
    tables.mkdir(parents=True)
    content = write_result(replace(diagnosis, source=replace(diagnosis.source, path=path.name)), tables)
    contents = {"contents": digest_contents(path)}
    write_json(folder / DOCUMENT, _document(diagnosis, contents, tables, content))
    for name, result in beside.items():
        document = {"version": ANALYSIS_VERSION, **contents, "result": write_result(result, folder)}
        write_json(folder / f"{name}.json", document)


def _document(diagnosis: "Diagnosis", inputs: dict[str, str], tables: Path, content: object) -> dict[str, object]:
    """Return what is saved; its verdict stands by itself, so that lists of runs need not load the diagnosis."""
    verdict = diagnosis.verdict.verdict_class.value
    return {"version": ANALYSIS_VERSION, **inputs, "verdict": verdict, "tables": tables.name, "diagnosis": content}


def digest_contents(path: Path) -> str:
    """Return a digest of names and contents of a diagnosis' inputs; unlike :func:`fingerprint_inputs` it reads them."""
    path = path.absolute()
    digest = hashlib.sha256()
    for file in sorted(_inputs(path)):
        with contextlib.suppress(OSError):
            digest.update(os.fsencode(f"\0{file.relative_to(path)}\0{file.stat().st_size}\0") + file.read_bytes())
    return digest.hexdigest()


def timeline_name(inputs: str) -> str:
    """Return the name of the timeline's index that was made from these inputs."""
    return _TIMELINE + inputs[:32]


def _inputs(path: Path) -> list[Path]:
    if is_run(path):
        return [*window_files(RunFolder(path)), *_noted(RunFolder(path))]
    return _files_of_log(path)


def _files_of_log(path: Path) -> list[Path]:
    if path.is_dir():
        with contextlib.suppress(TraceReadError):  # what holds more than the search looks at is no log
            return list(files_below(path, TraceReadError))
        return []
    return [path]


def _noted(folder: RunFolder) -> list[Path]:
    """Return what a run's diagnosis is made from beside its windows."""
    noted = [table.path(folder) for table in RUN_TABLES if table.is_diagnosed]
    noted += [folder.written, folder.recipe, folder.events, folder.files]
    return [*opened_files(folder), *(file for file in noted if file.exists())]


def _folders(path: Path) -> list[Path]:
    """Return where the diagnosis may lie, the preferred folder first; the last one can always be made."""
    key = hashlib.sha256(os.fsencode(path)).hexdigest()[:32]
    own = [RunFolder(path).analysis] if is_run(path) else []
    return [*own, cache_folder() / "analysis" / key]


def _is_bundled(folder: Path) -> bool:
    """Say whether a run's folder of analyses came with the run: it belongs to a sample, of this checkout or another."""
    if folder.parent.parent == samples_folder():
        return True
    with contextlib.suppress(OSError, ValueError):
        document = json.loads((folder / DOCUMENT).read_text(encoding="utf-8"))
        return isinstance(document, dict) and "contents" in document
    return False
