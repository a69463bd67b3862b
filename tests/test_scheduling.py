"""Tests that share something costly run in one process, and those that may take long do not run last."""

import fcntl
import threading
from pathlib import Path

import pytest

from tests.support.going_ahead import FIRST, LOCK, wait_for_first
from tests.support.scheduling import WORKERS, find_group

SHARED = {"server": "app", "browser": "app", **WORKERS}


def test_what_is_shared_is_made_in_one_process(request: pytest.FixtureRequest) -> None:
    for item in request.session.items:
        asked = [SHARED[name] for name in SHARED if name in getattr(item, "fixturenames", ())]
        file = item.nodeid.partition("::")[0]
        group = find_group(request.config.rootpath, file) or ""
        assert all(group.startswith(name) for name in asked), f"{file} shares nothing"


def test_what_a_file_makes_for_its_tests_is_made_once(pytestconfig: pytest.Config) -> None:
    assert find_group(pytestconfig.rootpath, "tests/test_contributing.py") == "tests/test_contributing.py"


def test_what_shares_nothing_goes_where_a_process_is_free(pytestconfig: pytest.Config) -> None:
    assert find_group(pytestconfig.rootpath, "tests/test_units.py") is None


def test_long_tests_come_first(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nmarkers = slow:\n")
    pytester.makeconftest("from tests.conftest import *")
    pytester.makepyfile("import pytest\ndef test_short(): ...\n@pytest.mark.slow\ndef test_long(): ...\n")
    result = pytester.runpytest_inprocess("-v", "-p", "no:randomly")
    result.stdout.fnmatch_lines(["*test_long PASSED*", "*test_short PASSED*"])


def test_the_others_wait_until_the_first_process_has_collected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LOCK, str(tmp_path / "lock"))
    other = threading.Thread(target=wait_for_first)
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        monkeypatch.setenv("PYTEST_XDIST_WORKER", FIRST)
        wait_for_first()
        monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw1")
        other.start()
        other.join(0.2)
        assert other.is_alive()
    other.join()
    (tmp_path / "lock").unlink()
    wait_for_first()
