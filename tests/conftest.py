"""What every test relies on: no traces outside the test's folders, and tools that are there or named."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

REFERENCE_TRACES = Path(__file__).resolve().parents[2] / "shared" / "traces"
settings.register_profile("no clock", deadline=None)  # a busy machine is no reason to fail
settings.load_profile("no clock")
SHARED = {"ask_tensorflow": "tensorflow", "server": "app", "browser": "app"}
"""Fixtures that take long to make, and their group: where tests run in several processes, a group stays in one of them."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite golden files from what the code yields now")


@pytest.fixture
def compare_golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Compare a text with a golden file, whole; only ``--update-golden`` rewrites the file."""

    def compare(path: Path, text: str) -> None:
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")

    return compare


@pytest.hookimpl(tryfirst=True)  # pytest-xdist looks for the groups in the same hook
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if any("browser" in item.fixturenames for item in items) and not any(map(shutil.which, BROWSERS)):
        pytest.exit(
            "The browser tests need Chromium: `apt-get update && apt-get install -y chromium` "
            "(or leave them out with -m 'not browser').",
            returncode=2,
        )
    for item in items:
        for group in {SHARED[name] for name in SHARED if name in item.fixturenames}:
            item.add_marker(pytest.mark.xdist_group(group))
    if REFERENCE_TRACES.is_dir() or "CI" in os.environ:
        return
    without = [item for item in items if item.get_closest_marker("reference_traces")]
    if without:
        print(
            f"\n{len(without)} tests left out: the reference captures are not beside this clone ({REFERENCE_TRACES})."
        )
        config.hook.pytest_deselected(items=without)
        items[:] = [item for item in items if item not in without]


@pytest.fixture
def reference_traces() -> Path:
    """The folder of real captures; in CI its absence is a failure."""
    assert REFERENCE_TRACES.is_dir(), f"reference captures are missing: {REFERENCE_TRACES}"
    return REFERENCE_TRACES


@pytest.fixture(scope="session", autouse=True)
def _own_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep caches, stores and sockets of the tests away from the user's own."""
    home = tmp_path_factory.mktemp("home")
    kinds = {
        "XDG_CACHE_HOME": home / "cache",
        "XDG_DATA_HOME": home / "data",
        "XDG_RUNTIME_DIR": home / "run",
        "PIPELINE_LAB_RUNTIME": home / "runtime",
        "PIPELINE_LAB_CACHE": home / "cache" / "pipeline-lab",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, folder in kinds.items():
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            patch.setenv(name, str(folder))
        patch.delenv("PIPELINE_LAB_STORE", raising=False)
        yield
