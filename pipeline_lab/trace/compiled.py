"""Compile loops over events once and keep the machine code on disk."""

import hashlib
import importlib
import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import ParamSpec, TypeVar, cast

import numba
import platformdirs

P = ParamSpec("P")
R = TypeVar("R")

SOURCES = (
    "trace/wire.py",
    "trace/xplane/plane_wire.py",
    "trace/xplane/salvage.py",
    "trace/chrome_trace.py",
    "trace/legacy/local_scan.py",
    "analysis/tf_data/kernels.py",
)
"""The files of the package that hold compiled functions."""


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile ``function`` on its first call, without the GIL; later processes load the machine code.

    The code lies in the user's cache folder (or ``NUMBA_CACHE_DIR``), in a folder of its own per version of `SOURCES`:
    Numba watches only the file of the function itself, and ours call each other across files. Where nothing can be
    written the code is compiled in every process, which costs some seconds and changes no result.
    """
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(_folder(before))
    try:
        return cast(Callable[P, R], numba.njit(nogil=True, cache=True)(function))
    except RuntimeError:
        return cast(Callable[P, R], numba.njit(nogil=True)(function))
    finally:
        numba.config.CACHE_DIR = before


def is_compiled() -> bool:
    """Say whether machine code from an earlier process is there; without it a first reading takes seconds longer."""
    return any(_folder(numba.config.CACHE_DIR).rglob("*.nbi"))


def leave_out_linear_algebra() -> None:
    """Keep Numba from loading ``scipy.linalg``, for which it looks once and which no loop of ours needs.

    That is a tenth of a small file's diagnosis. Only for processes of our own: they can compile no matrix products.
    """
    if "scipy.linalg" in sys.modules:
        return
    sys.modules["scipy.linalg"] = None  # type: ignore[assignment]  # Python's way to say that there is no such module
    try:
        importlib.import_module("numba.np.arraymath")
    finally:
        del sys.modules["scipy.linalg"]


@cache
def _folder(chosen: str) -> Path:
    root = Path(chosen) if chosen else Path(platformdirs.user_cache_dir("pipeline-lab")) / "compiled"
    package = Path(os.path.realpath(__file__)).parents[1]
    digest = hashlib.blake2b(b"".join((package / name).read_bytes() for name in SOURCES), digest_size=8)
    return root / digest.hexdigest()
