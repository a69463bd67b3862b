"""What reading a file may cost: bytes that are mapped and not copied, a memory budget, and temporary files on disk.

A valid trace stays far below its budget; a hostile one is refused before memory is allocated. Temporary files have no name
and disappear with their last use. They are in ``TMPDIR``, else in ``/var/tmp``, which is on disk where ``/tmp`` may be
memory.
"""

import mmap
import os
import tempfile
from pathlib import Path
from typing import BinaryIO, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.errors import TraceReadError
from pipeline_lab.trace.wire import ByteArray
from pipeline_lab.units import format_bytes

SPARE_BYTES = 48 << 20
BYTES_PER_FILE_BYTE = 3

# What Python and NumPy keep for one of each, in bytes (measured, rounded up).
PER_EVENT = 21  # where there are more names than 16 bits tell apart
PER_NAME = 220
PER_LINE = 1600
PER_PLANE = 2600


class MemoryBudget:
    """Counts down the memory that columns, names, lines and planes of one file may take.

    The limit is 48 MiB plus three times the bytes of the file, which itself is mapped once.
    """

    def __init__(self, name: str, size_bytes: int) -> None:
        self._name = name
        self._left = SPARE_BYTES + BYTES_PER_FILE_BYTE * size_bytes

    def has_room(self, count: int, bytes_each: int) -> bool:
        """Say whether that many things would fit."""
        return count * bytes_each <= self._left

    def take(self, count: int, bytes_each: int, what: str) -> None:
        """Reserve memory for ``count`` things.

        Raises:
            TraceReadError: They do not fit; no profiler writes that many.
        """
        self._left -= count * bytes_each
        if self._left < 0:
            raise TraceReadError(
                f"{self._name} claims to hold more {what} than a profiler writes into a file of its size; "
                "it is damaged or not a trace, so record it again."
            )


def map_path(path: Path) -> ByteArray:
    """Map a file into memory, read-only, shape (bytes,).

    Raises:
        TraceReadError: The file cannot be opened or is empty.
    """
    try:
        with path.open("rb") as file:
            return map_file(file, path.name)
    except OSError as error:
        raise TraceReadError(f"{path} cannot be read: {error.strerror or error}.") from error


def map_file(file: BinaryIO, name: str) -> ByteArray:
    """Map an open file; it may be closed or unlinked afterwards."""
    try:
        return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
    except ValueError as error:
        raise TraceReadError(
            f"{name} is empty (0 bytes): TensorFlow leaves such a file when a capture grows past 2 GiB or is cut off; "
            "record shorter windows."
        ) from error


def release_pages(data: NDArray[np.generic], begin: int = 0, end: int | None = None) -> None:
    """Let the system take back the pages of a mapped file that a scan has touched; reading brings them back.

    An array in memory stays there.

    Args:
        data: The array.
        begin, end: Bytes of the file; all if not given.
    """
    base: object = data.base
    mapped = base.obj if isinstance(base, memoryview) else None
    if isinstance(mapped, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        first, after = begin - begin % mmap.PAGESIZE, len(mapped) if end is None else end
        if first < after:
            mapped.madvise(mmap.MADV_DONTNEED, first, after - first)


PREFIX = "pipeline-lab-"
_ON_DISK = "/var/tmp"  # noqa: S108 - a folder for nameless files

Number = TypeVar("Number", bound=np.generic)


def scratch_folder() -> str:
    """Return the folder for temporary files."""
    on_disk = _ON_DISK if os.access(_ON_DISK, os.W_OK) else tempfile.gettempdir()
    return os.environ.get("TMPDIR") or on_disk


def scratch_file() -> BinaryIO:
    """Open a file that exists only while it is open or mapped."""
    return cast(BinaryIO, tempfile.TemporaryFile(prefix=PREFIX, dir=scratch_folder()))


def empty_on_disk(count: int, kind: type[Number]) -> NDArray[Number]:
    """Return an array, shape (count,), whose pages the system may write to disk when memory runs short.

    Raises:
        TraceReadError: The disk is full.
    """
    size_bytes = count * np.dtype(kind).itemsize
    with scratch_file() as file:
        try:
            _reserve(file.fileno(), size_bytes)
        except OSError as error:
            raise TraceReadError(
                f"The trace needs {format_bytes(size_bytes)} in {scratch_folder()}, which is not available "
                f"({error.strerror}); free some space there, or name another folder in TMPDIR."
            ) from error
        return np.frombuffer(mmap.mmap(file.fileno(), size_bytes), kind)


def _reserve(handle: int, size_bytes: int) -> None:
    """Take the disk's space at once: a write into a mapped file cannot report a full disk."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(handle, 0, size_bytes)
    else:
        os.ftruncate(handle, size_bytes)
