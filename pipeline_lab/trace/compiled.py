"""Compile the reader's loops once and keep the machine code on disk."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile ``function`` on its first call, without the GIL; later processes load the machine code.

    Numba keeps the code beside the source, or in the user's cache folder where the package is read-only. Where neither
    can be written the code is compiled in every process, which costs some seconds and changes no result. Numba watches
    only the file of the function itself, so every compiled function that calls another lives in the same file as that one.
    """
    try:
        return cast(Callable[P, R], numba.njit(nogil=True, cache=True)(function))
    except RuntimeError:
        return cast(Callable[P, R], numba.njit(nogil=True)(function))
