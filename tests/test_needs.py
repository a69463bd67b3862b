"""What a machine lacks is told in one line, and is a failure in CI."""

import pytest

from tests import needs
from tests.needs import NEEDS, describe_left_out

LINE = "Left out 3 browser tests: Chromium is missing; install it with `sudo apt-get install chromium`."
SESSION = """
import pytest

@pytest.fixture(scope="session")
def browser():
    raise AssertionError("there is none")

@pytest.mark.parametrize("number", range(3))
def test_in_a_browser(browser, number): ...

def test_elsewhere(): ...
"""


@pytest.fixture
def session(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Return a session of three tests with a browser and one without, on a machine that has none."""
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("PATH", str(pytester.path))
    pytester.makeini("[pytest]\nmarkers = browser:\n server:\n slow:\n")
    pytester.makeconftest("from tests.conftest import *")
    pytester.makepyfile(SESSION)
    return pytester


def left_out(result: pytest.RunResult) -> list[str]:
    return [line for line in result.outlines if line.startswith("Left out")]


@pytest.mark.slow
@pytest.mark.parametrize("processes", [0, 1])
def test_what_needs_a_missing_browser_is_left_out_and_told_once(session: pytest.Pytester, processes: int) -> None:
    result = session.runpytest_inprocess(f"--numprocesses={processes}", "--dist=loadgroup")
    assert result.ret == 0
    assert left_out(result) == [LINE]
    assert "1 passed" in result.outlines[-1]


def test_what_was_not_chosen_is_not_left_out(session: pytest.Pytester) -> None:
    result = session.runpytest_inprocess("-m", "not browser")
    assert result.ret == 0
    assert not left_out(result)


@pytest.mark.slow
def test_a_missing_browser_is_a_failure_in_ci(session: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    result = session.runpytest_inprocess()
    result.assert_outcomes(passed=1, errors=3)
    assert "Chromium is missing; install it with `sudo apt-get install chromium`." in result.outlines


def test_each_need_is_one_sentence_with_a_way_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs.shutil, "which", lambda _: None)
    assert "browser" in needs.find_missing()
    assert describe_left_out({"browser": 1})[0].startswith("Left out 1 browser test: Chromium is missing")
    assert len({need.marker for need in NEEDS}) == len(NEEDS)
