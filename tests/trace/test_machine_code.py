"""Object files are put into memory as LLVM does it, or left to LLVM."""

import ctypes
import struct
from array import array
from collections.abc import Callable

import numpy as np
import pytest

from pipeline_lab.trace import machine_code
from pipeline_lab.trace.compiled import _ENTRY, CompiledFunction, _compile, _place_by_llvm, compiled
from pipeline_lab.trace.machine_code import place_code
from pipeline_lab.trace.wire import Int64Array
from tests.support.machines import on_x86_linux

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not on_x86_linux(), reason="LLVM puts code into memory on this machine"),
]
KINDS = ("l", "l")


@compiled
def choose(values: Int64Array, out: Int64Array) -> int:
    """Hold constants, a table of jumps, a call of the C library (``memset``) and another function."""
    for row in range(len(out)):
        out[row] = 0
    for row in range(len(values)):
        out[row] = weigh(values[row])
    return len(values)


@compiled
def weigh(value: int) -> int:
    if value == 1:
        return 17
    if value == 2:
        return -4
    if value == 3:
        return 999_999_999_999
    if value == 4:
        return 5
    if value == 5:
        return value * value
    return 0


@pytest.fixture(scope="module")
def code() -> bytes:
    return _compile(CompiledFunction(choose.__wrapped__), KINDS)


def call(address: int) -> tuple[int, list[int]]:
    """Call the code at an address as `CompiledFunction` does."""
    values, out = np.array([3, 1, 5, 2, 9, 4], np.int64), np.full(8, 77, np.int64)
    numbers = array("q", [0, values.ctypes.data, len(values), out.ctypes.data, len(out)])
    entry = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_int64] * 4)(address)
    nowhere = (ctypes.c_int64 * 2)()
    place = numbers.buffer_info()[0]
    assert entry(ctypes.addressof(nowhere), ctypes.addressof(nowhere), place, place) == 0
    return numbers[0], out.tolist()


EXPECTED = (6, [999_999_999_999, 17, 25, -4, 0, 5, 0, 0])


@pytest.mark.parametrize("place", [lambda code: place_code(code, _ENTRY), _place_by_llvm], ids=["own", "LLVM"])
def test_code_runs_wherever_it_was_put_from(code: bytes, place: Callable[[bytes], int]) -> None:
    assert call(place(code)) == EXPECTED


def test_what_is_no_object_file_of_this_processor_is_left_to_llvm(code: bytes) -> None:
    for_arm = bytearray(code)
    for_arm[18:20] = struct.pack("<H", 183)
    executable = bytearray(code)
    executable[16:18] = struct.pack("<H", 2)
    for other in (b"", code[:40], bytes(for_arm), bytes(executable), b"\x7fELE" + code[4:]):
        assert place_code(other, _ENTRY) is None


def test_a_file_that_ends_early_is_left_to_llvm(code: bytes) -> None:
    assert all(place_code(code[:length], _ENTRY) is None for length in range(0, len(code) // 2, 97))


def test_a_function_that_is_not_there_is_left_to_llvm(code: bytes) -> None:
    assert place_code(code, "nothing") is None


def test_gaps_and_names_that_are_not_understood_are_left_to_llvm(code: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    assert place_code(code.replace(b"\0memset\0", b"\0memsot\0"), _ENTRY) is None  # no such function anywhere
    monkeypatch.setattr(machine_code, "_ADDRESS", 99)
    assert place_code(code, _ENTRY) is None


@compiled
def sum_of(values: Int64Array) -> int:
    total = 0
    for row in range(len(values)):
        total += values[row] if values[row] > 0 else -values[row] // 3
    return total


@compiled
def sum_twice(values: Int64Array, out: Int64Array) -> int:
    out[0] = sum_of(values[1:])
    return sum_of(values) + sum_of(out)


def test_nobody_counts_who_uses_an_array() -> None:
    code = _compile(CompiledFunction(sum_twice.__wrapped__), KINDS)
    assert b"NRT" not in code
    assert sum_twice(np.array([4, -9, 2]), np.zeros(2, np.int64)) == 9 + 5


def test_where_the_system_grants_no_memory_for_code_llvm_is_asked(code: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    class Library:
        def __getattr__(self, name: str) -> object:
            return (lambda *_: -1) if name == "mprotect" else getattr(ctypes.PyDLL(None), name)

    monkeypatch.setattr(machine_code.ctypes, "CDLL", lambda _: Library())
    assert place_code(code, _ENTRY) is None
