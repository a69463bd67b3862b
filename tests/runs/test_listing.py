import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline_lab.runs import listing
from pipeline_lab.runs.listing import list_runs
from pipeline_lab.runs.record import GONE, ListedRun, RunRecord, RunState, RunStatus, this_process
from pipeline_lab.runs.run_folder import RunFolder, parse_record, read_record, write_record
from tests.support.presets import SYNTHETIC

RUNS = listing.WORTH_KEEPING


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIPELINE_LAB_CACHE", str(tmp_path / "cache"))


def write(folder: Path, status: RunStatus, name: str = "a run") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    options = SYNTHETIC.options.model_dump(mode="json")
    write_record(RunFolder(folder), RunRecord(folder.name, name, status, options, tags=("kept",)))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return the folder of just as many runs that are over as are worth keeping."""
    root = tmp_path / "store"
    for number in range(RUNS):
        write(root / f"run-{number:03d}", RunStatus(RunState.DONE, created_s=float(number), exit_code=0))
    return root


def list_in_next_process(root: Path) -> list[ListedRun]:
    listing._known.clear()
    parse_record.cache_clear()
    return list_runs(root)[0]


@pytest.fixture
def read_again(store: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """List the runs of the store, and return the names of those that are read again later."""
    list_runs(store)
    read: list[str] = []
    parse = listing.parse_record
    monkeypatch.setattr(
        listing, "parse_record", lambda folder, file: (read.append(Path(folder).name), parse(folder, file))[1]
    )
    return read


def test_the_next_process_reads_no_record_that_is_the_same(store: Path, read_again: list[str]) -> None:
    runs = list_in_next_process(store)
    assert runs == [read_record(RunFolder(store / run.id)).listed for run in runs]
    assert (len(runs), runs[7].preset, runs[7].workload, runs[7].tags) == (RUNS, "synthetic", "synthetic", ("kept",))
    assert read_again == []


def test_a_record_of_the_same_size_and_time_is_read_again_where_it_is_another_file(
    store: Path, read_again: list[str]
) -> None:
    changed = store / "run-007"
    before = (changed / "run.json").stat()
    write(changed, RunStatus(RunState.DONE, created_s=7.0, exit_code=0), name="b run")
    os.utime(changed / "run.json", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (changed / "run.json").stat().st_size == before.st_size
    assert list_in_next_process(store)[7].name == "b run"
    assert read_again == ["run-007"]


def test_what_was_deleted_or_damaged_since_is_not_listed(store: Path, read_again: list[str]) -> None:
    (store / "run-000" / "run.json").unlink()
    (store / "run-001" / "run.json").write_text("{")
    runs = list_in_next_process(store)
    assert [run.id for run in runs] == [f"run-{number:03d}" for number in range(2, RUNS)]
    assert [one.id for one in list_runs(store)[1]] == ["run-001"]
    assert set(read_again) == {"run-001"}


def test_a_run_that_was_kept_as_live_is_lost_once_its_supervisor_is_gone(store: Path) -> None:
    gone = replace(this_process(), started_ticks=1, created_s=1.0)
    write(store / "run-000", RunStatus(RunState.RUNNING, created_s=0.0, supervisor=this_process()))
    assert list_runs(store)[0][0].status.state is RunState.RUNNING
    file = listing._kept_in(store)
    document = json.loads(file.read_text())
    document["runs"]["run-000"][1]["status"]["supervisor"] = vars(gone)
    file.write_text(json.dumps(document))
    lost = list_in_next_process(store)[0].status
    assert (lost.state, lost.reason) == (RunState.LOST, GONE)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"version": 1}', '{"version": 0, "runs": {}}', '{"version": 1, "runs": {"run-000": 3}}']
)
def test_a_damaged_list_costs_nothing_but_time(store: Path, read_again: list[str], text: str) -> None:
    listing._kept_in(store).write_text(text)
    assert len(list_in_next_process(store)) == RUNS
    assert len(read_again) == RUNS


def test_few_runs_are_not_kept(tmp_path: Path) -> None:
    write(tmp_path / "few" / "run", RunStatus(RunState.DONE))
    assert len(list_runs(tmp_path / "few")[0]) == 1
    assert not listing._kept_in(tmp_path / "few").exists()
