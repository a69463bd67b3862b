"""What every test relies on: no traces outside the test's folders, and tools that are there or named."""

import gc
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.needs import REFERENCE_TRACES, describe_left_out, find_missing, is_required
from tests.pretend_gpu import PretendGpu, build
from tests.support.going_ahead import GoingAhead, wait_for_first
from tests.support.warm_worker import warm_worker

settings.register_profile("no clock", deadline=None)  # a busy machine is no reason to fail
settings.load_profile("no clock")


COSTLY = {
    "lab": "slow",
    "open_page": "slow",
    "ask_tensorflow": "tensorflow",
    "ask_gpu": "tensorflow",
    "pretend_gpu": "pretend_gpu",
    "server": "server",
    "browser": "browser",
}
"""Fixtures that take long to make, and the marker of the tests that use them, so that they can be chosen and left out."""
pytest_plugins = ["pytester"]
ROOT = Path(__file__).resolve().parents[1]
AskGpu = Callable[..., Any]
"""Called with the name of a function, ``gpu=PretendGpu(…)`` and its arguments."""
AHEAD = pytest.StashKey[GoingAhead]()
LEFT_OUT = pytest.StashKey[dict[str, int]]()
"""How many tests were left out, by the marker of what they need."""


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


def pytest_configure(config: pytest.Config) -> None:
    """Share compiled loops over events between processes and runs of the tests: compiling them takes half a minute."""
    os.environ.setdefault("NUMBA_CACHE_DIR", str(config.rootpath / ".pytest_cache" / "compiled"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """Let one process compile what several would otherwise compile side by side: loops over events, and the tests."""
    if not any(Path(os.environ["NUMBA_CACHE_DIR"]).rglob("*.o")):
        config.stash[AHEAD] = GoingAhead()


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    wait_for_first()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Exclude the collected tests from garbage collection: Streamlit collects after each run of a page, which took 0.3 s."""
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any) -> None:
    _end_going_ahead(node.config)


def _end_going_ahead(config: pytest.Config) -> None:
    """Let all processes collect once one of them has, or has died."""
    if AHEAD in config.stash:
        config.stash[AHEAD].end()
        del config.stash[AHEAD]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    if config.getoption("dist") != "loadgroup":
        return None
    from tests.support.scheduling import FileGroups  # needs pytest-xdist

    return FileGroups(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    for item in items:
        for marker in {COSTLY[name] for name in COSTLY if name in item.fixturenames}:
            item.add_marker(marker)
    yield  # -m chooses, and the order is shuffled
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)  # else one process might end with a long one
    if not is_required():
        _leave_out(config, items)


def _leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    missing = find_missing()
    lacking = {id(item): marker for item in items for marker in missing if item.get_closest_marker(marker)}
    if lacking:
        config.stash[LEFT_OUT] = dict(Counter(lacking.values()))
        config.hook.pytest_deselected(items=[item for item in items if id(item) in lacking])
        items[:] = [item for item in items if id(item) not in lacking]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker, need in find_missing().items() if is_required() else ():
        if item.get_closest_marker(marker):
            pytest.fail(f"{need}.", pytrace=False)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell the process that reports what this one left out."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = session.config.stash.get(LEFT_OUT, {})


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take what a worker of pytest-xdist has left out; each of them collects all tests."""
    _end_going_ahead(node.config)
    if found := getattr(node, "workeroutput", {}).get("left_out"):
        node.config.stash[LEFT_OUT] = found


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for line in describe_left_out(config.stash.get(LEFT_OUT, {})):
        terminalreporter.write_line(line, yellow=True)


@pytest.fixture(scope="session")
def pretend_gpu(pytestconfig: pytest.Config) -> Path:
    """The folder of the pretend GPU's libraries, for ``PretendGpu.environment``."""
    return build(pytestconfig.rootpath / ".pytest_cache" / "pretend_gpu")


@pytest.fixture(scope="session")
def ask_gpu(_own_folders: None, pretend_gpu: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AskGpu]:
    """Call a function, ``module:name``, in a new process that has TensorFlow loaded and the GPUs that ``gpu`` describes."""
    usual, log = PretendGpu(), tmp_path_factory.mktemp("gpu") / "log"
    with warm_worker("tests.pretend_gpu.worker", usual.environment(pretend_gpu), log) as ask:
        yield lambda task, gpu=usual, **arguments: ask(task, gpu=gpu.settings(), **arguments)


@pytest.fixture
def reference_traces() -> Path:
    """The folder of real captures."""
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
