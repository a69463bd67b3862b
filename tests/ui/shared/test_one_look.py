import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.ui.shared import one_look
from pipeline_lab.ui.shared.one_look import AT_FULL_PACE, KEPT_S, REST, look, paced

VISITORS = 8


@pytest.fixture
def now_s(monkeypatch) -> list[float]:
    """Hold the moment that it is."""
    moment = [1000.0]
    monkeypatch.setattr(one_look.time, "monotonic", lambda: moment[0])
    return moment


@pytest.mark.usefixtures("now_s")
def test_visitors_who_come_at_once_wait_for_one_result(tmp_path):
    made, all_came = [], threading.Barrier(VISITORS)

    def make():
        made.append(1)
        return len(made)

    def visit(_):
        all_came.wait()
        return look(RunFolder(tmp_path), "charts", make)

    with ThreadPoolExecutor(VISITORS) as visitors:
        seen = list(visitors.map(visit, range(VISITORS)))
    assert (seen, made) == ([1] * VISITORS, [1])


def test_it_is_made_again_once_it_is_old(tmp_path, now_s):
    made = []

    def visit():
        return look(RunFolder(tmp_path), "charts", lambda: made.append(1) or len(made))

    assert (visit(), visit()) == (1, 1)
    now_s[0] += KEPT_S
    assert visit() == 2


def test_runs_and_what_is_made_of_them_are_told_apart(tmp_path):
    first, second = RunFolder(tmp_path / "a"), RunFolder(tmp_path / "b")
    seen = [look(first, "charts", lambda: 1), look(second, "charts", lambda: 2), look(first, "table", lambda: 3)]
    assert seen == [1, 2, 3]


def test_what_could_not_be_made_is_tried_again(tmp_path):
    def fail():
        raise OSError

    for make in (fail, lambda: 1):
        try:
            seen = look(RunFolder(tmp_path), "charts", make)
        except OSError:
            continue
    assert seen == 1


def test_what_takes_long_to_make_is_kept_longer(tmp_path, now_s):
    made = []

    def make():
        made.append(1)
        now_s[0] += KEPT_S
        return len(made)

    assert look(RunFolder(tmp_path), "charts", make) == 1
    now_s[0] += (REST - 1) * KEPT_S
    assert look(RunFolder(tmp_path), "charts", make) == 1
    now_s[0] += KEPT_S
    assert look(RunFolder(tmp_path), "charts", make) == 2


@pytest.mark.parametrize("pages", [0, 1, AT_FULL_PACE, 5 * AT_FULL_PACE])
def test_many_pages_together_refresh_no_oftener_than_a_few(monkeypatch, pages):
    monkeypatch.setattr(one_look, "open_pages", lambda: pages)
    assert pages / paced(1.0) <= AT_FULL_PACE
    assert paced(1.0) == 1.0 or pages > AT_FULL_PACE
