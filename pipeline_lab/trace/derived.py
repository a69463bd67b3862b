"""Read what TensorFlow 2.2 to 2.8 derived from a trace at capture time: the step table and the verdict.

Such a log holds `<host>.input_pipeline.pb` and `<host>.overview_page.pb`, which contains the former, often without the
trace itself.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from pipeline_lab.errors import TraceReadError
from pipeline_lab.trace.message import DamagedMessageError
from pipeline_lab.trace.stored_analysis import DerivedProfile
from pipeline_lab.trace.trace_file import as_text
from pipeline_lab.units import format_bytes

MAX_BYTES = 8_000_000
"""TensorFlow's own derived files are a hundred times smaller."""

_FILE_NAME = re.compile(r"(?:(?P<host>.*)\.)?(?P<kind>input_pipeline|overview_page)\.pb")


def is_derived(name: str) -> bool:
    """Say whether a file of this name holds a step table of TensorFlow 2.2 to 2.8."""
    return _FILE_NAME.fullmatch(name) is not None


def read_session(paths: Sequence[Path]) -> tuple[DerivedProfile, ...]:
    """Read the derived files of one session folder, one profile per host in the order of their names.

    Of a host's two files the overview page says more; the other one is read when that one is damaged. Paths that are
    no derived files are left out.

    Raises:
        TraceReadError: A host's files are damaged, all of them, or no path is a derived file.
    """
    by_host: dict[str, list[Path]] = {}
    for path in sorted(paths, key=lambda path: path.name, reverse=True):
        match = _FILE_NAME.fullmatch(path.name)
        if match:
            by_host.setdefault(match["host"] or "", []).append(path)
    if not by_host:
        raise TraceReadError("There is no *.input_pipeline.pb and no *.overview_page.pb in this log.")
    return tuple(_read_first(found) for _, found in sorted(by_host.items()))


def read_derived(path: Path, data: bytes | None = None) -> DerivedProfile:
    """Read one derived file; ``data`` is its content where that does not lie on the disk as it is.

    Raises:
        TraceReadError: It is empty, damaged, too large, or no such file.
    """
    match = _FILE_NAME.fullmatch(path.name)
    if not match:
        raise TraceReadError(
            f"{path.name} is no derived profile; those are named *.input_pipeline.pb or *.overview_page.pb."
        )
    content = _read_bytes(path) if data is None else data
    if not content:
        raise TraceReadError(f"{path.name} is empty; record the profile again.")
    from pipeline_lab.trace.derived_message import MessageReader  # few logs hold such files

    reader = MessageReader(content)
    try:
        reader.read(match["kind"])
    except DamagedMessageError as error:
        raise TraceReadError(
            f"{path.name} is damaged at byte {error.position} of {len(content)}; record the profile again."
        ) from None
    if not reader.found:
        raise TraceReadError(f"{path.name} holds no input pipeline analysis, which TensorFlow 2.2 to 2.8 writes there.")
    return reader.finish(path, as_text(match["host"] or ""))


def _read_first(paths: Sequence[Path]) -> DerivedProfile:
    """Read the first of a host's files that can be read; the first one's error stands for all."""
    errors = []
    for path in paths:
        try:
            return read_derived(path)
        except TraceReadError as error:
            errors.append(error)
    raise errors[0]


def _read_bytes(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise TraceReadError(
                f"{path.name} holds {format_bytes(size)}; a derived profile is smaller than {format_bytes(MAX_BYTES)}."
            )
        return path.read_bytes()
    except OSError as error:
        raise TraceReadError(f"{path.name} cannot be read: {error.strerror}.") from None
