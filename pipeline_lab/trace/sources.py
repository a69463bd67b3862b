"""Find the traces in whatever the user points at: a file, a session folder, a log directory, a run, an archive.

Finding is cheap and reads no events; a reader is loaded when a file of its kind is read. What one host recorded in one
window counts once: the raw trace is preferred over files that were made from it, which are read only if the raw one
cannot be.
"""

import contextlib
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path

from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import TraceIncompleteError, TraceReadError
from pipeline_lab.folders import as_text, files_below
from pipeline_lab.trace.archives import expand, is_archive, unpack
from pipeline_lab.trace.file_memory import PREFIX, scratch_folder
from pipeline_lab.trace.legacy import derived
from pipeline_lab.trace.plausible import leave_out_impossible
from pipeline_lab.trace.schema import ChooseStat, Salvage, Trace, choose_none
from pipeline_lab.trace.wire import ByteArray


class FileKind(StrEnum):
    """What a trace file is, best first."""

    XPLANE = "xplane"
    TRACE_JSON = "trace_json"
    LEGACY = "legacy"


_ENDINGS = (
    (re.compile(r"(?P<host>.*?)\.?xplane\.pb(\.gz)?"), FileKind.XPLANE),
    (re.compile(r"(?P<host>.*?)\.?trace\.json(\.gz)?"), FileKind.TRACE_JSON),
    (re.compile(r"(?P<host>.*?)\.trace(\.gz)?"), FileKind.LEGACY),
)
_BEGINS_JSON = re.compile(rb'(\xef\xbb\xbf)?\s*(\{\s*["}]|\[\s*[{\]])')
_HEAD = 1 << 16


@dataclass(frozen=True)
class TraceFile:
    """One capture on disk: one host in one window.

    Attributes:
        path: The file.
        kind: What its name says it is.
        window: Name of the session folder, with the folder of the run before it where a log directory holds several;
            empty for a lone file.
        host: The host as the file's name has it.
        size_bytes: Length of the file on disk, possibly compressed.
        others: Files of the same host and window to read instead if needed, best first.
    """

    path: Path
    kind: FileKind
    window: str
    host: str
    size_bytes: int
    others: tuple["TraceFile", ...] = ()

    def read(self, keep: ChooseStat = choose_none) -> Trace:
        """Read the capture; if nothing in the file can be read, read the next of the others.

        Args:
            keep: Says which stat of an event to keep at hand, where the kind of file allows it.

        Raises:
            TraceReadError: Nothing can be read in any of them.
        """
        try:
            return self._read(keep)
        except TraceReadError as error:
            for other in self.others:
                with contextlib.suppress(TraceReadError):
                    return self._replaced(other, keep, error)
            raise

    def _replaced(self, other: "TraceFile", keep: ChooseStat, error: TraceReadError) -> Trace:
        """Read another file in place of this one, and say so."""
        trace = other._read(keep)
        lost = self.size_bytes + (trace.salvage.bytes_lost if trace.salvage else 0)
        also = f" {trace.salvage.reason}" if trace.salvage else ""
        reason = f"{error} {other.path.name} was read in its place.{also}"
        return replace(trace, salvage=Salvage(lost, trace.event_count, reason))

    def _read(self, keep: ChooseStat) -> Trace:
        content = expand(self.path)
        trace = leave_out_impossible(self._read_bytes(content.data, keep))
        if content.cut:
            lost = trace.salvage.bytes_lost if trace.salvage else 0
            trace = replace(trace, salvage=Salvage(lost, trace.event_count, content.cut))
        return trace if trace.host else replace(trace, host=self.host)

    def _read_bytes(self, data: ByteArray, keep: ChooseStat) -> Trace:
        if self.kind is FileKind.LEGACY:
            from pipeline_lab.trace.legacy import local_trace

            return local_trace.read_legacy_bytes(data, self.path, window=self.window)
        if is_json(data):
            from pipeline_lab.trace import chrome_trace

            return chrome_trace.read_bytes(data, self.path, window=self.window)
        from pipeline_lab.trace.xplane import xspace

        return xspace.read_bytes(data, self.path, window=self.window, keep=keep)


def session_file(path: Path) -> TraceFile:
    """Return the raw trace in a session's folder, such as ``<window>/<host>.xplane.pb``, which may be gzipped."""
    host = path.name.removesuffix(".gz").removesuffix(".xplane.pb")
    return TraceFile(path, FileKind.XPLANE, path.parent.name, host, path.stat().st_size)


def kind_and_host(path: Path) -> tuple[FileKind, str] | None:
    """Return kind and host by a file's name, None if it is not a trace's name."""
    for pattern, kind in _ENDINGS:
        match = pattern.fullmatch(path.name)
        if match:
            return kind, as_text(match["host"])
    return None


def is_json(data: ByteArray) -> bool:
    """Say whether a file is JSON (an XSpace may begin with a line feed and a brace, too)."""
    return _BEGINS_JSON.match(data[:_HEAD].tobytes()) is not None


RUN_RECORD = "run.json"
EXPECTED = "expected <host>.xplane.pb or <host>.trace.json.gz, a log directory or an archive of these"
HOW_TO_RECORD = (
    "record one with tf.profiler.experimental.start(logdir) … stop(), or with "
    "tf.keras.callbacks.TensorBoard(logdir, profile_batch=(10, 20))"
)
_ORDER = {kind: rank for rank, kind in enumerate(FileKind)}


class SourceKind(StrEnum):
    """What the user pointed at."""

    RUN = "run"
    XPLANE = "xplane"
    TRACE_JSON = "trace_json"
    DERIVED = "derived"
    LOGDIR = "logdir"


_KIND_OF_FILE = {
    FileKind.XPLANE: SourceKind.XPLANE,
    FileKind.TRACE_JSON: SourceKind.TRACE_JSON,
    FileKind.LEGACY: SourceKind.TRACE_JSON,  # the same trace events, in binary
}


@dataclass(frozen=True)
class TraceSource:
    """What was found.

    Attributes:
        path: What the user pointed at.
        root: The unpacked folder; the path itself if it is not an archive.
        kind: What it is.
        files: The captures, by window and host.
        derived: Files that hold TensorFlow's own step table and verdict.
        notes: What was left out and why, one sentence each.
    """

    path: Path
    root: Path
    kind: SourceKind
    files: tuple[TraceFile, ...]
    derived: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def windows(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(file.window for file in self.files))

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(file.host for file in self.files))

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)


@dataclass(frozen=True)
class SearchRoot:
    """A folder to search.

    Attributes:
        root: The folder.
        window: Window name for files directly in it: that of the archive it came from, else empty.
    """

    root: Path
    window: str = ""


def look_at_file(path: Path) -> TraceSource:
    """Classify a single file by its name.

    Raises:
        TraceReadError: It is a TensorBoard file without a profile.
    """
    if derived.is_derived(path.name):
        return TraceSource(path, path, SourceKind.DERIVED, (), (path,))
    if _is_events_file(path):
        raise TraceReadError(f"{path.name} is a TensorBoard events file, which holds no profile; {HOW_TO_RECORD}.")
    kind, host = kind_and_host(path) or (FileKind.XPLANE, path.name.split(".")[0])
    file = TraceFile(path, kind, "", host, path.stat().st_size)
    return TraceSource(path, path, _KIND_OF_FILE[kind], (file,))


def search(places: Sequence[SearchRoot], path: Path) -> TraceSource:
    """Search folders, all of which belong to ``path``.

    Raises:
        TraceReadError: There is nothing that could be a trace.
    """
    files, stored, others = [], [], []
    for place in places:
        for found in files_below(place.root, TraceReadError):
            classified = kind_and_host(found)
            if derived.is_derived(found.name):
                stored.append(found)
            elif classified:
                files.append(_trace_file(found, place, *classified))
            else:
                others.append(found)
    notes = [
        f"{file.path.name} is empty (0 bytes): TensorFlow leaves such a file when a capture grows past 2 GiB or is cut "
        "off."
        for file in files
        if not file.size_bytes
    ]
    chosen = _choose(file for file in files if file.size_bytes)
    if not chosen and not stored:
        raise TraceReadError(_nothing(path, notes, others))
    kind = SourceKind.LOGDIR if chosen else SourceKind.DERIVED
    root = places[0].root
    if (root / RUN_RECORD).is_file():
        kind = SourceKind.RUN
    return TraceSource(path, root, kind, chosen, tuple(stored), tuple(notes))


def _trace_file(path: Path, place: SearchRoot, kind: FileKind, host: str) -> TraceFile:
    window = _window(path.parent.relative_to(place.root)) or place.window
    return TraceFile(path, kind, window, host, path.stat().st_size)


def _window(folder: Path) -> str:
    """Name a session by its folder: ``train/plugins/profile/2026_01_02`` is ``train/2026_01_02``."""
    return as_text("/".join(part for part in folder.parts if part not in ("plugins", "profile")))


def _choose(files: Iterable[TraceFile]) -> tuple[TraceFile, ...]:
    """Take the best file of each window and host, with the others as substitutes."""
    found: dict[tuple[str, str], list[TraceFile]] = {}
    for file in sorted(files, key=lambda file: (file.window, file.host, _ORDER[file.kind], file.path.name)):
        found.setdefault((file.window, file.host), []).append(file)
    return tuple(replace(best, others=tuple(others)) for best, *others in found.values())


def _is_events_file(path: Path) -> bool:
    return ".tfevents." in path.name


def _nothing(path: Path, notes: list[str], others: list[Path]) -> str:
    if notes:
        return f"{path}: {notes[0]} Record shorter windows."
    if any(map(_is_events_file, others)):
        return f"{path} holds TensorBoard events but no profile; {HOW_TO_RECORD}."
    if not others:
        return f"{path} is empty; {EXPECTED}."
    return f"{path} holds no profiler trace; {EXPECTED}."


_ARCHIVE = re.compile(r"[^.].*\.(zip|tar|tgz|tar\.gz)")


@contextmanager
def find_traces(path: Path) -> Iterator[TraceSource]:
    """Find the traces at ``path``; an archive stays unpacked until the context ends.

    Raises:
        TraceReadError: There is nothing that could be a trace; the text says what is there instead.
    """
    if not path.exists():
        raise TraceReadError(f"{path} does not exist.")
    archives = [path] if path.is_file() else _archives_in(path)
    if not path.is_dir() and not is_archive(path):
        yield look_at_file(path)
    elif not archives:
        yield search([SearchRoot(path)], path)
    else:
        with tempfile.TemporaryDirectory(prefix=PREFIX, dir=scratch_folder()) as name:
            places, problems = _unpack_all(archives, Path(name), alone=archives == [path])
            found = search([SearchRoot(path)] * path.is_dir() + places, path)
            yield replace(found, notes=(*found.notes, *problems))


def _archives_in(folder: Path) -> list[Path]:
    """Return the archives directly in a folder, for example several uploaded files."""
    return [path for path in sorted(folder.iterdir()) if _ARCHIVE.fullmatch(path.name) and is_archive(path)]


def _unpack_all(archives: list[Path], scratch: Path, *, alone: bool) -> tuple[list[SearchRoot], list[str]]:
    """Unpack each archive into its own folder; if one of several cannot be unpacked, note why."""
    places, problems = [], []
    for number, archive in enumerate(archives):
        folder = scratch / str(number)
        folder.mkdir()
        try:
            cut = unpack(archive, folder)
        except TraceReadError as error:
            if alone:
                raise
            problems.append(str(error))
            continue
        places.append(SearchRoot(_only_folder(folder), "" if alone else archive.name.split(".")[0]))
        problems += [cut] if cut else []
    return places, problems


def open_traces(path: Path) -> Iterator[Trace]:
    """Read the traces at ``path`` one after another, by window and host; each may be dropped before the next.

    If one of several files cannot be read, it gives a trace without planes whose ``salvage`` says why.

    Raises:
        TraceReadError: There is nothing that can be read.
        TraceIncompleteError: There are only derived files.
    """
    with find_traces(path) as source:
        if not source.files:
            raise TraceIncompleteError(
                f"{path} holds what TensorFlow derived from a trace, but not the trace; its step table and verdict "
                "can be shown, its events cannot."
            )
        failures = []
        for file in source.files:
            try:
                yield file.read()
            except TraceReadError as error:
                failures.append(error)
                if len(failures) == len(source.files):
                    raise
                yield _unreadable(file, error)


def read_trace(path: Path | str) -> Trace:
    """Read the one trace at ``path``.

    Raises:
        TraceReadError: There is none, or more than one.
    """
    with find_traces(Path(path)) as source:
        if len(source.files) != 1:
            raise TraceReadError(f"{path} holds {len(source.files)} traces, not one; name one of its files.")
        return source.files[0].read()


def _unreadable(file: TraceFile, error: TraceReadError) -> Trace:
    lost = Salvage(bytes_lost=file.size_bytes, events_kept=0, reason=str(error))
    return Trace(file.path, file.host, file.window, (), None, None, None, file.size_bytes, lost)


def _only_folder(folder: Path) -> Path:
    """Step into the one folder that many archives consist of."""
    inside = list(folder.iterdir())
    return inside[0] if len(inside) == 1 and inside[0].is_dir() and inside[0].name != "plugins" else folder
