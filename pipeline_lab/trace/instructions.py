"""Instructions of the processor that compiled loops use and NumPy has no name for; Numba is asked for them when it compiles."""

from collections.abc import Callable
from functools import cached_property, update_wrapper
from inspect import Parameter, Signature, signature
from typing import Any, Generic, ParamSpec, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

P = ParamSpec("P")
R = TypeVar("R")


class Instruction(Generic[P, R]):
    """A function of arrays' beginnings and 64-bit numbers, and how LLVM writes it.

    Args:
        function: What it does, in Python.
        write: Given LLVM's builder and the arguments, an array as where it lies; returns the result, or None.
    """

    def __init__(self, function: Callable[P, R], write: Callable[..., Any]) -> None:
        self.function = function
        self._write = write
        update_wrapper(self, function)

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> R:
        return self.function(*arguments, **named)

    @cached_property
    def dispatcher(self) -> Any:
        """The instruction as compiled functions call it."""
        from numba import types
        from numba.extending import intrinsic

        result = {int: types.int64, np.uint64: types.uint64, None: types.none}[self.function.__annotations__["return"]]

        def declare(_: Any, *kinds: Any) -> tuple[Any, Callable[..., Any]]:
            taken = [
                kind if isinstance(kind, types.Array) else types.uint64 if kind == types.uint64 else types.int64
                for kind in kinds
            ]
            return result(*taken), emit

        def emit(context: Any, builder: Any, declared: Any, arguments: Any) -> Any:
            values = [
                context.make_array(kind)(context, builder, value).data if isinstance(kind, types.Array) else value
                for kind, value in zip(declared.args, arguments, strict=True)
            ]
            return self._write(builder, *values) or context.get_dummy_value()

        names = [
            Parameter(name, Parameter.POSITIONAL_ONLY) for name in ("context", *signature(self.function).parameters)
        ]
        cast(Any, declare).__signature__ = Signature(names)  # Numba takes as many arguments as this names
        return intrinsic(declare)


def instruction(write: Callable[..., Any]) -> Callable[[Callable[P, R]], Instruction[P, R]]:
    """Make a function an instruction that is written by ``write``."""
    return lambda function: Instruction(function, write)


def _write_fetch(builder: Any, data: Any, at: Any) -> None:
    from llvmlite import ir
    from numba.core import cgutils

    whole = ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [data.type, whole, whole, whole])
    fetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
    to_read, to_be_kept, of_data = whole(0), whole(3), whole(1)
    builder.call(fetch, [builder.gep(data, [at]), to_read, to_be_kept, of_data])


def _write_load(builder: Any, data: Any, at: Any) -> Any:
    from llvmlite import ir

    loaded = builder.load(builder.bitcast(builder.gep(data, [at]), ir.IntType(64).as_pointer()))
    loaded.align = 1
    return loaded


def _write_count(builder: Any, word: Any) -> Any:
    from llvmlite import ir

    return builder.cttz(word, ir.IntType(1)(0))


def _write_push(builder: Any, word: Any) -> Any:
    from llvmlite import ir
    from numba.core import cgutils

    whole = ir.IntType(64)
    if _pushes_at_once():
        extract = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(whole, [whole, whole]), "llvm.x86.bmi.pext.64"
        )
        return builder.call(extract, [word, whole(_SEVENS)])
    for low, step in ((0x007F_007F_007F_007F, 1), (0x0000_3FFF_0000_3FFF, 2), (0x0000_0000_0FFF_FFFF, 4)):
        high = builder.and_(builder.lshr(word, whole(step)), whole(low << 7 * step))
        word = builder.or_(builder.and_(word, whole(low)), high)
    return word


_SEVENS = 0x7F7F_7F7F_7F7F_7F7F


def _pushes_at_once() -> bool:
    """Say whether the processor has BMI2, and not as AMD's first ones have it: in steps that take longer."""
    import numba
    from llvmlite import binding

    compiles_for_another = bool(numba.config.CPU_NAME or numba.config.CPU_FEATURES)
    has_slow_one = binding.get_host_cpu_name() in ("bdver4", "znver1", "znver2")
    return bool(binding.get_host_cpu_features().get("bmi2")) and not has_slow_one and not compiles_for_another


@instruction(_write_push)
def push_sevens(word: np.uint64) -> np.uint64:
    """Push the lower seven bits of each byte together, to 56 bits; the byte's other bit must be 0 in all of them."""
    whole = int(word)
    return np.uint64(sum((whole >> 8 * place & 0x7F) << 7 * place for place in range(8)))


@instruction(_write_fetch)
def fetch_early(data: NDArray[np.uint8], at: int) -> None:
    """Have the bytes around ``data[at]`` brought near while other work goes on; ``at`` may lie outside.

    A loop whose next place depends on the bytes of the last one waits for memory otherwise.
    """


@instruction(_write_load)
def load_word(data: NDArray[np.uint8], at: int) -> np.uint64:
    """Return the eight bytes from ``data[at]`` on, the first one lowest; all of them must be there."""
    return np.uint64(int.from_bytes(data[at : at + 8].tobytes(), "little"))


@instruction(_write_count)
def count_zeros(word: np.uint64) -> int:
    """Return how many of the lowest bits are 0: 64 if all are."""
    whole = int(word)
    return (whole & -whole).bit_length() - 1 if whole else 64
