"""One capture on disk: what its name says that it is, and which reader it needs.

A reader is loaded when a file of its kind is read: most logs hold one kind.
"""

import contextlib
import re
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from pipeline_lab.errors import TraceReadError
from pipeline_lab.trace.archives import expand
from pipeline_lab.trace.schema import Salvage, Trace
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
        size_bytes: Length of the file as it lies there, maybe compressed.
        others: Files of the same host and window that stand in for it, best first.
    """

    path: Path
    kind: FileKind
    window: str
    host: str
    size_bytes: int
    others: tuple["TraceFile", ...] = ()

    def read(self) -> Trace:
        """Read the capture; where nothing in the file can be read, the next one that stands in for it.

        Raises:
            TraceReadError: Nothing can be read in any of them.
        """
        try:
            return self._read()
        except TraceReadError as error:
            for other in self.others:
                with contextlib.suppress(TraceReadError):
                    return self._replaced(other, error)
            raise

    def _replaced(self, other: "TraceFile", error: TraceReadError) -> Trace:
        """Read another file in place of this one, and say so."""
        trace = other._read()
        lost = self.size_bytes + (trace.salvage.bytes_lost if trace.salvage else 0)
        also = f" {trace.salvage.reason}" if trace.salvage else ""
        reason = f"{error} {other.path.name} was read in its place.{also}"
        return replace(trace, salvage=Salvage(lost, trace.event_count, reason))

    def _read(self) -> Trace:
        content = expand(self.path)
        trace = self._read_bytes(content.data)
        if content.cut:
            lost = trace.salvage.bytes_lost if trace.salvage else 0
            trace = replace(trace, salvage=Salvage(lost, trace.event_count, content.cut))
        return trace if trace.host else replace(trace, host=self.host)

    def _read_bytes(self, data: ByteArray) -> Trace:
        if self.kind is FileKind.LEGACY:
            from pipeline_lab.trace.legacy import local_trace

            return local_trace.read_legacy_bytes(data, self.path, window=self.window)
        if is_json(data):
            from pipeline_lab.trace.chrome import chrome_trace

            return chrome_trace.read_bytes(data, self.path, window=self.window)
        from pipeline_lab.trace.xplane import xspace

        return xspace.read_bytes(data, self.path, window=self.window)


def session_file(path: Path) -> TraceFile:
    """Return the raw trace that lies in a session's folder, as ``<window>/<host>.xplane.pb``."""
    host = path.name.removesuffix(".xplane.pb")
    return TraceFile(path, FileKind.XPLANE, path.parent.name, host, path.stat().st_size)


def classify(path: Path) -> tuple[FileKind, str] | None:
    """Return kind and host by a file's name, None if it is no trace's."""
    for pattern, kind in _ENDINGS:
        match = pattern.fullmatch(path.name)
        if match:
            return kind, as_text(match["host"])
    return None


def as_text(name: str) -> str:
    """Return the name of a file or folder as text; what is no UTF-8 is replaced."""
    return name.encode("utf-8", "replace").decode()


def is_json(data: ByteArray) -> bool:
    """Say whether a file is JSON (an XSpace may begin with a line feed and a brace, too)."""
    return _BEGINS_JSON.match(data[:_HEAD].tobytes()) is not None
