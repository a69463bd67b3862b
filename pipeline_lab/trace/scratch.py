"""Room on disk for what may outgrow memory: files without a name, gone with the last use of them.

They lie in ``TMPDIR``, or else in ``/var/tmp``, which is kept on disk where ``/tmp`` may be memory.
"""

import mmap
import os
import tempfile
from typing import BinaryIO, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.errors import TraceReadError
from pipeline_lab.units import format_bytes

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
                f"The trace needs {format_bytes(size_bytes)} in {scratch_folder()}, which cannot be had "
                f"({error.strerror}); free some space there, or name another folder in TMPDIR."
            ) from error
        return np.frombuffer(mmap.mmap(file.fileno(), size_bytes), kind)


def _reserve(handle: int, size_bytes: int) -> None:
    """Take the disk's space at once: a write into a mapped file finds no other way to say that the disk is full."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(handle, 0, size_bytes)
    else:
        os.ftruncate(handle, size_bytes)
