"""Find the traces in whatever the user points at: a file, a session folder, a log directory, a run, an archive.

Finding is cheap and reads no events.
"""

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pipeline_lab.errors import TraceIncompleteError, TraceReadError
from pipeline_lab.trace.log_search import Place, TraceSource, look_at_file, search
from pipeline_lab.trace.schema import Salvage, Trace
from pipeline_lab.trace.scratch import PREFIX, scratch_folder
from pipeline_lab.trace.trace_file import TraceFile
from pipeline_lab.trace.unpacking import is_archive, unpack

_ARCHIVE = re.compile(r"[^.].*\.(zip|tar|tgz|tar\.gz)")


@contextmanager
def find_traces(path: Path) -> Iterator[TraceSource]:
    """Find the traces at ``path``; an archive stays unpacked until the context ends.

    Raises:
        TraceReadError: There is nothing that could be a trace; the sentence says what there is instead.
    """
    if not path.exists():
        raise TraceReadError(f"{path} does not exist.")
    archives = [path] if path.is_file() else _archives_in(path)
    if not path.is_dir() and not is_archive(path):
        yield look_at_file(path)
    elif not archives:
        yield search([Place(path)], path)
    else:
        with tempfile.TemporaryDirectory(prefix=PREFIX, dir=scratch_folder()) as name:
            places, problems = _unpack_all(archives, Path(name), alone=archives == [path])
            found = search([Place(path)] * path.is_dir() + places, path)
            yield replace(found, notes=(*found.notes, *problems))


def _archives_in(folder: Path) -> list[Path]:
    """Return the archives that lie directly in a folder, as where several files were uploaded together."""
    return [path for path in sorted(folder.iterdir()) if _ARCHIVE.fullmatch(path.name) and is_archive(path)]


def _unpack_all(archives: list[Path], scratch: Path, *, alone: bool) -> tuple[list[Place], list[str]]:
    """Unpack each archive into a folder of its own; one of several that cannot be unpacked is told of."""
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
        places.append(Place(_only_folder(folder), "" if alone else archive.name.split(".")[0]))
        problems += [cut] if cut else []
    return places, problems


def open_traces(path: Path) -> Iterator[Trace]:
    """Read the traces at ``path`` one after another, by window and host; each may be dropped before the next.

    Of several files one that cannot be read gives a trace without planes whose ``salvage`` says why.

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


def open_trace(path: Path | str) -> Trace:
    """Read the one trace at ``path``.

    Raises:
        TraceReadError: There is none, or more than one.
    """
    with find_traces(Path(path)) as source:
        if len(source.files) != 1:
            raise TraceReadError(f"{path} holds {len(source.files)} traces, not one; open_traces reads them in turn.")
        return source.files[0].read()


def _unreadable(file: TraceFile, error: TraceReadError) -> Trace:
    lost = Salvage(bytes_lost=file.size_bytes, events_kept=0, reason=str(error))
    return Trace(file.path, file.host, file.window, (), None, None, None, file.size_bytes, lost)


def _only_folder(folder: Path) -> Path:
    """Step into the one folder that many archives consist of."""
    inside = list(folder.iterdir())
    return inside[0] if len(inside) == 1 and inside[0].is_dir() and inside[0].name != "plugins" else folder
