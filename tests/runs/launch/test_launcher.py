"""What a launch leaves in the store before any process runs."""

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline_lab.errors import StoreError
from pipeline_lab.options.race_options import RaceOptions
from pipeline_lab.options.run_options import RunOptions, set_options
from pipeline_lab.pipeline.source import needs_probe, render_source
from pipeline_lab.runs import own_job_runs
from pipeline_lab.runs.launch import launcher, runtime
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.store import RunStore
from tests.support.presets import BASELINE

PROBED = set_options(BASELINE.options, [("workload.data", "files"), ("workload.pattern", "/data/*")])
RACE = RaceOptions(arms=(PROBED, PROBED))


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / "profiles")


@pytest.mark.parametrize("name", ["run.json", "pipeline.py", "pipeline.probed.py", ".reserve"])
@pytest.mark.parametrize("options", [PROBED, RACE], ids=["run", "race"])
def test_a_run_whose_first_write_fails_leaves_nothing_behind(
    store: RunStore, options: RunOptions | RaceOptions, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_disk_at(monkeypatch, name)
    with pytest.raises(StoreError, match="No space left on device"):
        launcher.create_run(store, options)
    assert list(store.root.iterdir()) == []


def test_a_recording_whose_first_write_fails_leaves_nothing_behind(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_disk_at(monkeypatch, "run.json")
    with pytest.raises(StoreError, match="No space left on device"):
        own_job_runs.begin(store, "train.py", tags=())
    assert list(store.root.iterdir()) == []


def test_a_run_for_which_no_process_can_be_started_has_failed(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(runtime, "start_detached", refuse)
    monkeypatch.setattr(launcher, "hand_over", lambda _: False)
    with pytest.raises(StoreError, match="Resource temporarily unavailable"):
        launcher.launch(store, BASELINE.options)
    (run,) = store.runs()
    assert run.status.state is RunState.FAILED


@pytest.mark.parametrize(("options", "times"), [(BASELINE.options, 1), (PROBED, 2), (RACE, 4)])
def test_a_launch_renders_each_source_once(
    store: RunStore, options: RunOptions | RaceOptions, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rendered = []

    def render(arm: RunOptions, *, probe: bool = False) -> str:
        rendered.append((arm, probe))
        return render_source(arm, probe=probe)

    monkeypatch.setattr(launcher, "render_source", render)
    folder = launcher.create_run(store, options)
    assert len(rendered) == times
    if isinstance(options, RunOptions):
        assert folder.source.read_text() == render_source(options)
        assert folder.probed_source.exists() == needs_probe(options)
    else:
        assert [folder.arm(number).source.read_text() for number in range(2)] == list(map(render_source, options.arms))


def fill_disk_at(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Let the disk be full when a file of that name is written."""

    def full(write: Callable[..., Any], place: int) -> Callable[..., Any]:
        def write_or_fail(*arguments: Any, **options: Any) -> Any:
            if arguments[place].name == name:
                raise OSError(errno.ENOSPC, "No space left on device")
            return write(*arguments, **options)

        return write_or_fail

    monkeypatch.setattr(Path, "write_text", full(Path.write_text, 0))
    monkeypatch.setattr(Path, "write_bytes", full(Path.write_bytes, 0))
    monkeypatch.setattr(Path, "replace", full(Path.replace, 1))
