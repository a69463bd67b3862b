"""Compiled code outlives the process that compiled it."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pipeline_lab.analysis.diagnosis.diagnose import diagnose
from pipeline_lab.trace.compiled import CompiledFunction, _compile, _read, compiled
from pipeline_lab.trace.wire import Int64Array
from tests.support.machines import on_x86_linux

SMALL = Path(__file__).parents[1] / "data" / "small_pipeline.xplane.pb"
SCRIPT = """
import sys
from pathlib import Path
from pipeline_lab.trace.compiled import is_compiled
from pipeline_lab.trace.xplane.xspace import read_xplane
before = is_compiled()
count = read_xplane(Path(sys.argv[1])).event_count
print(count, before, is_compiled(), *[name in sys.modules for name in ("numba", "llvmlite")])
"""


def read_with_cache(folder: Path) -> str:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(SMALL)], env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout.strip()


@pytest.mark.slow
def test_a_second_process_finds_the_code_of_the_first_and_needs_no_compiler(tmp_path: Path) -> None:
    assert read_with_cache(tmp_path) == "708 False True True True"
    assert read_with_cache(tmp_path) == f"708 True True False {not on_x86_linux()}"


@compiled
def add_up(values: Int64Array, weights: tuple[Int64Array, int], out: Int64Array) -> tuple[int, bool]:
    total = 0
    for row in range(len(values)):
        total += values[row] * weights[0][row] * weights[1]
        out[row] = total
    return total, total > 10


@compiled
def twice(value: int) -> int:
    return 2 * value


def test_where_nothing_can_be_written_functions_compile_all_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    assert twice(21) == 42
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.slow
def test_arrays_numbers_and_tuples_go_in_and_come_out() -> None:
    out = np.zeros(3, np.int64)
    assert add_up(np.array([1, 2, 3]), (np.array([1, 1, 2]), 1), out) == (9, False)
    assert out.tolist() == [1, 3, 9]
    assert add_up(np.array([[1, 7], [2, 7], [3, 7]])[:, 0], (np.array([1, 1, 2]), 2), out) == (18, True)


@pytest.mark.slow
def test_an_array_of_other_numbers_is_compiled_for_anew() -> None:
    out = np.zeros(3, np.int64)
    assert add_up(np.array([1, 2, 3], np.int32), (np.array([1, 1, 2]), 1), out) == (9, False)


def test_numbers_in_another_byte_order_are_read_as_what_they_are() -> None:
    out = np.zeros(2, np.int64)
    assert add_up(np.array([1, 2], ">i8"), (np.array([1, 1], ">i8"), 3), out) == (9, False)


@pytest.mark.slow
def test_damaged_machine_code_is_made_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert CompiledFunction(twice.__wrapped__)(21) == 42
    (kept,) = tmp_path.rglob("*.o")
    sound = kept.read_bytes()
    for damaged in (sound[: len(sound) // 2], b"", sound[:-1] + bytes([sound[-1] ^ 1])):
        kept.write_bytes(damaged)
        assert CompiledFunction(twice.__wrapped__)(4) == 8
        assert _read(kept), "names in it count on, so that its length may differ"


@pytest.mark.slow
def test_another_version_of_numba_makes_it_slower_and_not_wrong(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def gone(*_: object) -> bytes:
        raise AttributeError("module 'numba.core.compiler' has no attribute 'compile_extra'")

    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("pipeline_lab.trace.compiled._compile", gone)
    again = CompiledFunction(add_up.__wrapped__)
    assert again(np.array([1, 2, 3]), (np.array([1, 1, 2]), 1), np.zeros(3, np.int64)) == (9, False)


@pytest.mark.slow
def test_whole_numbers_that_a_reader_finds_stay_whole() -> None:
    """Where signed and unsigned numbers meet, as in what reads bytes, Numba makes floats of them without a word."""
    diagnose(SMALL)
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("pipeline_lab.trace.")]
    found = {id(each): each for module in modules for each in vars(module).values() if type(each) is CompiledFunction}
    known = [(each, next(iter(each._entries))) for each in found.values() if each._entries]
    assert len(known) > 10
    for each, kinds in known:
        _compile(each, kinds)
    floats = {
        f"{each.function.__name__}: {variable}"
        for each in found.values()
        for overload in each.dispatcher.overloads.values()
        for variable, kind in overload.type_annotation.typemap.items()
        if "float" in str(kind) and "float" not in str(each.function.__annotations__)
    }
    assert not floats


AT_ONCE = """
import os, sys, threading
import numpy as np
from pipeline_lab.trace.wire import read_varint
found = []
data = np.array([0x96, 0x01, 0x05], np.uint8)
threads = [threading.Thread(target=lambda: found.append(read_varint(data, 0, 3))) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
child = os.fork()
if not child:
    os._exit(read_varint(data, 2, 3) != (5, 3))
print(set(found), len(found), os.waitpid(child, 0)[1])
"""


@pytest.mark.slow
def test_threads_that_call_at_once_and_a_forked_process_get_the_same_answer(tmp_path: Path) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2])}
    for _ in range(2):  # once compiled, once loaded
        done = subprocess.run(
            [sys.executable, "-c", AT_ONCE], env=environment, stdout=subprocess.PIPE, text=True, check=True
        )
        assert done.stdout.strip() == "{(150, 2)} 8 0"
