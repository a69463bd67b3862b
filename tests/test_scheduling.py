"""Tests that share something costly run in one process, and those that may take long do not run last."""

import pytest

from tests.support.scheduling import WORKERS, find_group

SHARED = {"server": "app", "browser": "app", **WORKERS}


def test_what_is_shared_is_made_in_one_process(request: pytest.FixtureRequest) -> None:
    for item in request.session.items:
        asked = {SHARED[name] for name in SHARED if name in getattr(item, "fixturenames", ())}
        file = item.nodeid.partition("::")[0]
        assert asked <= {find_group(request.config.rootpath, file)}, f"{file} shares nothing"


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
