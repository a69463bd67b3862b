"""Compiled loops read words and numbers as Python does."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline_lab.trace import instructions
from pipeline_lab.trace.compiled import CompiledFunction, compiled
from pipeline_lab.trace.instructions import count_zeros, fetch_early, load_word, push_sevens
from pipeline_lab.trace.wire import ByteArray, read_varint, read_varint_at_once, skip_varint, skip_varint_at_once

WORDS = st.integers(0, 2**64 - 1)


@compiled
def count_of_word(data: ByteArray, at: int) -> int:
    return count_zeros(load_word(data, at))


@compiled
def low_half(data: ByteArray, at: int) -> int:
    return int(load_word(data, at) & np.uint64(0xFFFF_FFFF))


@compiled
def sevens(data: ByteArray, at: int) -> int:
    return int(np.int64(push_sevens(load_word(data, at))))


@compiled
def fetch_far(data: ByteArray, at: int) -> int:
    fetch_early(data, at)
    return at


@given(word=WORDS, before=st.binary(max_size=9))
@example(word=0, before=b"")
@example(word=1 << 63, before=b"x")
def test_a_word_is_the_same_in_python_and_compiled(word: int, before: bytes) -> None:
    data, at = np.frombuffer(before + word.to_bytes(8, "little"), np.uint8), len(before)
    zeros = 64 if word == 0 else f"{word:b}"[::-1].index("1")
    assert load_word(data, at) == word
    assert count_zeros(np.uint64(word)) == count_of_word(data, at) == zeros
    assert low_half(data, at) == word & 0xFFFF_FFFF


@given(digits=st.lists(st.integers(0, 0x7F), min_size=8, max_size=8))
@example(digits=[0x7F] * 8)
def test_sevens_of_bits_are_pushed_together_as_python_does(digits: list[int]) -> None:
    data = np.array(digits, np.uint8)
    expected = sum(digit * 128**place for place, digit in enumerate(digits))
    assert push_sevens(load_word(data, 0)) == sevens(data, 0) == expected


@pytest.mark.slow
def test_a_processor_that_takes_long_to_push_bits_is_given_steps(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[bool] = []
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(instructions, "_pushes_at_once", lambda: asked.append(True) is not None)
    for digits in ([1, 2, 3, 4, 5, 6, 7, 8], [0x7F] * 8, [0, 0x40, 0, 1, 0, 0x7F, 0, 0x33]):
        expected = sum(digit * 128**place for place, digit in enumerate(digits))
        assert CompiledFunction(sevens.__wrapped__)(np.array(digits, np.uint8), 0) == expected
    assert asked


@pytest.mark.parametrize("at", [0, 4, -(10**15), 10**15])
def test_bytes_may_be_fetched_early_from_anywhere(at: int) -> None:
    data = np.zeros(8, np.uint8)
    assert fetch_far(data, at) == at
    assert fetch_early(data, at) is None


@given(data=st.one_of(st.binary(min_size=10, max_size=10), st.lists(st.integers(0x80, 0xFF), max_size=10).map(bytes)))
@example(data=bytes.fromhex("ffffffffffffff7f"))
@example(data=bytes.fromhex("ffffffffffffffff01"))
@example(data=bytes.fromhex("ffffffffffffffffff01"))
@example(data=bytes.fromhex("ffffffffffffffffff83"))
@example(data=b"")
def test_a_number_is_the_same_read_at_once_or_byte_by_byte(data: bytes) -> None:
    array = np.frombuffer(data + bytes(10), np.uint8)
    value, after = read_varint(array, 0, len(array))
    assert read_varint_at_once(array, 0) == (value, after)
    assert skip_varint_at_once(array, 0) == skip_varint(array, 0, len(array)) == after
