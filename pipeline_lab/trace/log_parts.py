"""Who recorded the parts of a log that came as several files: what is asked when they may belong to several jobs.

A log directory says which captures belong together: those of one session folder were made at once. Files that were only
sent together say nothing, so their hosts and frameworks are looked at. That reads the beginning of each file, no events.
"""

import contextlib
import re
from collections.abc import Iterable
from pathlib import Path

from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import TraceReadError
from pipeline_lab.trace.archives import expand
from pipeline_lab.trace.legacy import derived
from pipeline_lab.trace.legacy.message import DamagedMessageError, read_fields, read_text
from pipeline_lab.trace.sources import TraceFile, find_traces, is_json, kind_and_host
from pipeline_lab.trace.wire import ByteArray

_HOST = re.compile(
    r"(?P<host>.+?)\.(xplane\.pb|trace|trace\.json|input_pipeline\.pb|overview_page\.pb|[a-z_]+_stats\.pb)(\.gz)?"
)
_LOOKED_AT = 16 << 20
"""Bytes from a file's beginning in which its framework is looked for; names of events are far apart in a large capture."""
_FRAMEWORKS = (
    ("PyTorch", re.compile(rb'"(deviceProperties|ProfilerStep#\d+|aten::\w+)"')),
    ("JAX", re.compile(rb"PjitFunction|jaxlib")),
    ("TensorFlow", re.compile(rb"FunctionRun|Iterator::|IteratorGetNext|tensorflow|TfOp")),
)


@dataclass(frozen=True)
class LogPart:
    """A part of a log that may be a job of its own.

    Attributes:
        name: Of its file, or of its folder or archive.
        paths: Its files and folders.
        hosts, frameworks: Who recorded it, as far as the files say.
        size_bytes: Of its captures.
    """

    name: str
    paths: tuple[Path, ...]
    hosts: tuple[str, ...]
    frameworks: tuple[str, ...]
    size_bytes: int


def find_parts(log: Path) -> tuple[LogPart, ...]:
    """Return the parts of a log that arrived; those without a capture are left out.

    Args:
        log: Its folder; a single file or folder in it is one part.
    """
    return tuple(_look_at(name, paths) for name, paths in _entries(log).items() if any(map(_holds_captures, paths)))


def disagree(parts: tuple[LogPart, ...]) -> bool:
    """Say whether the parts come from different hosts or frameworks, so that they may be several jobs."""
    return len({part.hosts for part in parts}) > 1 or len({part.frameworks for part in parts}) > 1


def others(log: Path) -> list[str]:
    """Return the names of what lies beside the captures of a log and is none, such as a text file."""
    return sorted(
        path.name for paths in _entries(log).values() for path in paths if path.is_file() and not _holds_captures(path)
    )


def _entries(log: Path) -> dict[str, tuple[Path, ...]]:
    """Return what lies at the top of a log, by name; what TensorFlow derived from a capture belongs to it."""
    folder, inside = log, list(log.iterdir())
    while len(inside) == 1 and inside[0].is_dir():
        folder, inside = inside[0], sorted(inside[0].iterdir())
    if (folder.parent.name == "profile" and folder.name != "opened") or folder.name in ("plugins", "profile"):
        return {folder.name: (folder,)}  # one session, or several of one job
    found: dict[str, tuple[Path, ...]] = {}
    for path in sorted(path for each in inside for path in _loose(each)):
        name = _host_of(path) or path.name
        found[name] = (*found.get(name, ()), path)
    return {(paths[0].name if len(paths) == 1 else name): paths for name, paths in found.items()}


def _loose(entry: Path) -> Iterable[Path]:
    """Return the files that came without a folder, which lie where TensorBoard looks for them; other entries as they are."""
    place = entry / "profile" / "opened"
    return place.iterdir() if entry.name == "plugins" and place.is_dir() else [entry]


def _host_of(path: Path) -> str:
    """Return the host as a file's name has it, empty for a folder, an archive or another file."""
    found = _HOST.fullmatch(path.name) if path.is_file() else None
    return found["host"] if found else ""


def _holds_captures(path: Path) -> bool:
    if path.is_file() and (kind_and_host(path) or derived.is_derived(path.name)):
        return True
    with contextlib.suppress(TraceReadError), find_traces(path) as source:
        return path.is_dir() or source.path != source.root
    return False


def _look_at(name: str, paths: tuple[Path, ...]) -> LogPart:
    hosts, frameworks, size_bytes = set(), set(), 0
    for path in paths:
        with contextlib.suppress(TraceReadError), find_traces(path) as source:
            for file in source.files:
                size_bytes += file.size_bytes
                host, framework = _who(file)
                hosts.add(host)
                frameworks.add(framework)
    return LogPart(name, paths, _known(hosts), _known(frameworks), size_bytes)


def _known(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(names) - {""}))


def _who(file: TraceFile) -> tuple[str, str]:
    """Return host and framework of one capture, empty where the file does not say."""
    try:
        data = expand(file.path).data
    except TraceReadError:
        return file.host, ""
    head = data[:_LOOKED_AT].tobytes()
    framework = next((name for name, words in _FRAMEWORKS if words.search(head)), "")
    return ("" if is_json(data) else _named_host(data)) or file.host, framework


_HOST_NAMES = 4
"""Field of an XSpace; its other fields are chunks, which are passed over."""


def _named_host(data: ByteArray) -> str:
    """Return the host that an XSpace names, empty if it names none or is damaged; read without compiled code, which loads slowly."""
    view = data.data
    with contextlib.suppress(DamagedMessageError):
        for field in read_fields(view, 0, len(view)):
            if field.number == _HOST_NAMES:
                return read_text(view, field)
    return ""
