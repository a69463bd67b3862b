"""Look at a file's bytes without copying them."""

import mmap
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.errors import TraceReadError
from pipeline_lab.trace.wire import ByteArray


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


def release_pages(data: NDArray[np.generic]) -> None:
    """Let the system take back the pages of a mapped file that a scan has touched; reading brings them back.

    An array that lies in memory stays there.
    """
    base: object = data.base
    mapped = base.obj if isinstance(base, memoryview) else None
    if isinstance(mapped, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)
