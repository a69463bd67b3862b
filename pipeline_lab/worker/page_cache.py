"""Drop files from the system's page cache, so that they are read from the disk; and see whether that worked.

``posix_fadvise(POSIX_FADV_DONTNEED)`` is advice: what lies in memory anyway (tmpfs), is in use elsewhere or is cached
by somebody else (a network file system, a virtual machine's host) stays. What is left is counted by ``mincore``.
"""

import ctypes
import mmap
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline_lab.runs.events import NoteEvent
from pipeline_lab.units import format_bytes
from pipeline_lab.worker.job import Job

KEPT_PERCENT = 1.0
"""Of the files; less does not count as kept."""
_FAILED = ctypes.c_void_p(-1).value


@dataclass(frozen=True)
class Dropping:
    """What became of files that were to leave the page cache.

    Attributes:
        size_bytes: Of all files.
        kept_bytes: Of them, still in the page cache; None where the system does not tell.
    """

    size_bytes: int
    kept_bytes: int | None

    @property
    def kept_percent(self) -> float | None:
        if self.kept_bytes is None:
            return None
        return 100.0 * self.kept_bytes / self.size_bytes if self.size_bytes else 0.0

    @property
    def is_cold(self) -> bool:
        """Whether the files will be read from the disk, as far as the system tells."""
        return self.size_bytes > 0 and self.kept_percent is not None and self.kept_percent <= KEPT_PERCENT


def cool(job: Job, paths: Sequence[str]) -> str | None:
    """Drop a job's files from the page cache if it asks for that; say where the system did not comply.

    Returns:
        How the files lie now: ``cold``, ``warm`` where nothing was asked for, None where that is not known.
    """
    if job.options.training.page_cache == "warm":
        return "warm"
    dropped = drop(paths)
    if dropped.is_cold:
        return "cold"
    if dropped.kept_bytes is None:
        kept = "does not tell whether the data files have left the page cache"
    elif not dropped.size_bytes:
        kept = "found no data file that could be dropped"
    else:
        kept = f"kept {format_bytes(dropped.kept_bytes)} of {format_bytes(dropped.size_bytes)} of the data files"
    job.log.write(
        NoteEvent(
            f"The page cache was to be cold, but the system {kept}: what is mapped, or lies in memory or on a network, stays."
        )
    )
    return None


def drop(paths: Iterable[str]) -> Dropping:
    """Ask the system to forget files, those inside of folders too; what was not written yet is written first."""
    size_bytes, kept_bytes = 0, 0
    is_known = True
    for path in _files(paths):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            length = os.fstat(descriptor).st_size
            kept = count_cached(descriptor, length)
        finally:
            os.close(descriptor)
        size_bytes += length
        kept_bytes += kept or 0
        is_known = is_known and kept is not None
    return Dropping(size_bytes, kept_bytes if is_known else None)


def count_cached(descriptor: int, length: int) -> int | None:
    """Return how many bytes of an open file lie in the page cache; None where the system does not tell."""
    if not length:
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_int64]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    address = libc.mmap(None, length, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
    if address is None or address == _FAILED:
        return None
    pages = (length + mmap.PAGESIZE - 1) // mmap.PAGESIZE
    resident = (ctypes.c_ubyte * pages)()
    try:
        if libc.mincore(address, length, resident):
            return None
    finally:
        libc.munmap(address, length)
    return min(length, sum(page & 1 for page in bytes(resident)) * mmap.PAGESIZE)


def _files(paths: Iterable[str]) -> Iterator[Path]:
    for path in map(Path, paths):
        if path.is_dir():
            yield from (inside for inside in path.rglob("*") if inside.is_file())
        elif path.is_file():
            yield path
