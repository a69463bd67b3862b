"""Work on several cores at once."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from pipeline_lab.trace import parallel
from pipeline_lab.trace.parallel import beside, has_other_core, keep_to_one_core, on_all_cores
from tests.support.patience import PATIENCE_S


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "_cores", lambda: 2)


def test_two_things_are_done_at_once_and_each_gives_its_result() -> None:
    both = threading.Barrier(2)
    assert beside(lambda: (both.wait(PATIENCE_S), "work")[1], lambda: (both.wait(PATIENCE_S), "other")[1]) == (
        "work",
        "other",
    )
    names = beside(*[lambda: threading.current_thread().name] * 2, events=0)
    assert names == (threading.current_thread().name,) * 2


def test_an_error_of_either_is_raised() -> None:
    def fail() -> None:
        raise ValueError("no")

    for work, other in ((fail, str), (str, fail)):
        with pytest.raises(ValueError, match="no"):
            beside(work, other)


def test_who_waits_beside_others_keeps_no_core_from_them() -> None:
    """Two analyses at once: each has something beside it that waits for what is done on all cores."""

    def analyze(_: int) -> bool:
        is_done = threading.Event()

        def work() -> None:
            both.wait(PATIENCE_S)
            on_all_cores(lambda number: number, range(4))
            is_done.set()

        return beside(work, lambda: is_done.wait(PATIENCE_S))[1]

    both = threading.Barrier(2)
    with ThreadPoolExecutor(2) as callers:
        assert list(callers.map(analyze, range(2))) == [True, True]


def test_a_thread_that_keeps_to_one_core_does_all_by_itself() -> None:
    def names() -> set[str]:
        keep_to_one_core()
        assert not has_other_core()
        return {*on_all_cores(lambda _: threading.current_thread().name, range(4)), *beside(*[_name] * 2)}

    with ThreadPoolExecutor(1) as other:
        assert len(other.submit(names).result()) == 1


def _name() -> str:
    return threading.current_thread().name
