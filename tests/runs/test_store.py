import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline_lab.errors import StoreError
from pipeline_lab.runs.launch.queue import QueueTurn
from pipeline_lab.runs.record import GONE, SILENT_S, Process, RunKind, RunRecord, RunState, is_alive, this_process
from pipeline_lab.runs.run_folder import RunFolder, read_record, update_record, write_record
from pipeline_lab.runs.store import RESERVE_BYTES, RunStore, describe_unreadable, find_path, open_store
from tests.support.presets import SYNTHETIC


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / "store")


def create(store: RunStore, name: str = "a run") -> RunFolder:
    return store.create(SYNTHETIC.options.model_copy(update={"name": name}), "source = 1\n")


def finish(folder: RunFolder) -> RunFolder:
    update_record(folder, lambda record: replace(record, status=record.status.change(RunState.DONE)))
    return folder


def test_a_run_is_found_by_its_id_its_name_or_as_the_latest(store: RunStore) -> None:
    with pytest.raises(
        StoreError, match=r"There is no latest run: .* holds none yet; `pipeline-lab run` records one\."
    ):
        store.find_id("latest")
    first, second = create(store, "mine"), create(store, "another")
    assert store.find_id(first.id) == first.id
    assert store.find_id("mine") == first.id
    with pytest.raises(StoreError, match=r"There is no latest search: .* `pipeline-lab fix` or `tune` begins one\."):
        store.find_id("latest", RunKind.TUNE)
    assert store.find_id("latest") == max((first, second), key=lambda one: store.read(one.id).status.created_s).id
    assert store.find_id("no such run") == "no such run"
    third = create(store, "mine")
    with pytest.raises(StoreError, match="2 runs are called 'mine'") as refused:
        store.find_id("mine")
    assert first.id in str(refused.value)
    assert third.id in str(refused.value)
    assert find_path("another", store) == second.path


def test_a_new_run_is_queued_with_options_source_and_reserve(store: RunStore) -> None:
    folder = create(store)
    record = store.read(folder.id)
    assert (record.name, record.status.state) == ("a run", RunState.QUEUED)
    assert record.options == SYNTHETIC.options.model_dump(mode="json") | {"name": "a run"}
    assert folder.source.read_text() == "source = 1\n"
    assert folder.reserve.stat().st_size == RESERVE_BYTES


def test_an_id_is_safe_readable_and_unique(store: RunStore) -> None:
    ids = {create(store, "../Täst: 1/2").id for _ in range(5)}
    assert len(ids) == 5
    for run_id in ids:
        assert store.folder(run_id).path.parent == store.root
        assert "t-st-1-2" in run_id


@pytest.mark.parametrize("run_id", ["", ".", "..", "../x", "a/b", "/etc", ".hidden", "x" * 201, "a\0b"])
def test_an_id_that_could_leave_the_store_is_refused(store: RunStore, run_id: str) -> None:
    with pytest.raises(StoreError, match="is not a run id"):
        store.folder(run_id)


def test_a_missing_run_is_named(store: RunStore) -> None:
    with pytest.raises(StoreError, match=r"There is no run 'gone' in .*runs list"):
        store.folder("gone")


def test_runs_are_listed_newest_first_and_samples_last(tmp_path: Path) -> None:
    samples = RunStore(tmp_path / "samples")
    sample = finish(create(samples, "sample"))
    store = RunStore(tmp_path / "store", samples.root)
    assert [record.id for record in store.runs()] == [sample.id]
    folders = [create(store, name) for name in ("first", "second")]
    for seconds, folder in enumerate(folders):
        update_record(folder, lambda r, s=seconds: replace(r, status=replace(r.status, created_s=time.time() - 9 + s)))

    assert [record.name for record in store.runs()] == ["second", "first", "sample"]
    assert store.is_sample(sample.id)
    assert not store.is_sample(folders[0].id)


def test_a_run_is_no_place_for_runs(store: RunStore) -> None:
    with pytest.raises(StoreError, match="is a run and not a store"):
        create(RunStore(create(store).path))


def test_what_is_no_run_or_damaged_is_not_listed(store: RunStore) -> None:
    create(store)
    (store.root / "not a run").mkdir()
    (store.root / "damaged").mkdir()
    (store.root / "damaged" / "run.json").write_text("{")
    (store.root / "file").write_text("")
    assert len(store.runs()) == 1


def test_what_cannot_be_read_is_named_and_hides_nothing_else(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, newer = create(store, "kept"), create(store, "newer")
    newer.record.write_text(kept.record.read_text().replace('"schema_version": 1', '"schema_version": 99'))
    (store.root / "lost+found").mkdir()
    is_file = Path.is_file

    def closed(path: Path) -> bool:
        if path.parent.name == "lost+found":
            raise PermissionError(13, "Permission denied")
        return is_file(path)

    monkeypatch.setattr(Path, "is_file", closed)
    records, unreadable = store.survey()
    assert [record.id for record in records] == [kept.id]
    assert {one.id: one.reason for one in unreadable}["lost+found"] == "Permission denied."
    sentence = describe_unreadable(unreadable)
    assert sentence.startswith("2 runs cannot be read: ")
    assert {newer.id, "lost+found"} == set(sentence.removeprefix("2 runs cannot be read: ").split(". ")[0].split(", "))
    assert describe_unreadable([]) == ""


def test_a_run_of_a_newer_version_is_deleted_only_on_demand(store: RunStore) -> None:
    folder = create(store)
    folder.record.write_text(folder.record.read_text().replace('"schema_version": 1', '"schema_version": 99'))
    with pytest.raises(StoreError, match=r"newer Pipeline Lab .* `pipeline-lab runs rm --force"):
        store.remove(folder.id)
    store.remove(folder.id, even_if_newer=True)
    assert not folder.path.exists()


@pytest.mark.usefixtures("lab")
@pytest.mark.parametrize("record", [None, "{"], ids=["reads as lost", "damaged"])
def test_a_run_that_holds_a_ticket_is_not_deleted_whatever_its_record_says(store: RunStore, record: str | None) -> None:
    folder = create(store)
    gone = Process(2**22 + 1, 0.0)
    update_record(folder, lambda run: replace(run, status=run.status.change(RunState.RUNNING, supervisor=gone)))
    if record is not None:
        folder.record.write_text(record)
    with contextlib.closing(QueueTurn(folder.id)), pytest.raises(StoreError, match=r"still running; cancel it first"):
        store.remove(folder.id)
    store.remove(folder.id)


def test_what_killed_processes_left_is_deleted_when_the_next_run_begins(store: RunStore) -> None:
    lost, live = create(store), create(store)
    gone = Process(2**22 + 1, 0.0)
    update_record(lost, lambda run: replace(run, status=run.status.change(RunState.RUNNING, supervisor=gone)))
    for folder in (lost, live):
        folder.scratch.mkdir()
    (store.root / ".deleted-half-0123" / "plugins").mkdir(parents=True)
    create(store)
    assert {lost.scratch.exists(), lost.reserve.exists()} == {False}
    assert {live.scratch.exists(), live.reserve.exists()} == {True}
    status = read_record(lost).status
    assert (status.state, status.reason) == (RunState.LOST, GONE)
    assert not list(store.root.glob(".deleted-*"))


def test_an_empty_store_lists_nothing(tmp_path: Path) -> None:
    assert RunStore(tmp_path / "missing").runs() == []


def test_samples_are_read_only(tmp_path: Path) -> None:
    sample = finish(create(RunStore(tmp_path / "samples")))
    store = RunStore(tmp_path / "store", tmp_path / "samples")
    for change in (
        lambda: store.rename(sample.id, "x"),
        lambda: store.tag(sample.id, ()),
        lambda: store.remove(sample.id),
    ):
        with pytest.raises(StoreError, match="is a bundled sample and cannot be"):
            change()
    assert store.read(sample.id).name == "a run"


def test_tags_are_trimmed_and_unique(store: RunStore) -> None:
    folder = create(store)
    assert store.tag(folder.id, (" a ", "b", "a", "", "x" * 50)).tags == ("a", "b", "x" * 40)
    assert store.read(folder.id).tags == ("a", "b", "x" * 40)
    assert store.tag(folder.id, ()).tags == ()


def test_a_run_is_never_without_a_name(store: RunStore) -> None:
    folder = create(store)
    assert store.rename(folder.id, "  new name ").name == "new name"
    assert store.rename(folder.id, "  ").name == folder.id


def test_a_run_that_is_over_can_be_deleted(store: RunStore) -> None:
    folder = finish(create(store))
    store.remove(folder.id)
    assert list(store.root.iterdir()) == []


def test_a_live_run_cannot_be_deleted(store: RunStore) -> None:
    folder = create(store)
    with pytest.raises(StoreError, match=r"still running; cancel it first"):
        store.remove(folder.id)


def test_a_damaged_run_can_be_deleted(store: RunStore) -> None:
    folder = create(store)
    folder.record.write_text("{")
    store.remove(folder.id)
    assert store.runs() == []


def test_a_live_run_without_its_supervisor_reads_as_lost(store: RunStore) -> None:
    folder = create(store)

    def started_by(process: Process | None, created_s: float) -> RunState:
        def change(record: RunRecord) -> RunRecord:
            status = record.status.change(RunState.RUNNING, supervisor=process, created_s=created_s)
            return replace(record, status=status)

        update_record(folder, change)
        return read_record(folder).status.state

    now_s = time.time()
    me = this_process()
    assert started_by(me, now_s) is RunState.RUNNING
    assert started_by(Process(me.pid, me.created_s - 100), now_s) is RunState.LOST  # a recycled pid
    assert started_by(None, now_s) is RunState.RUNNING  # its supervisor is on its way
    assert started_by(None, now_s - 3600) is RunState.LOST


@pytest.mark.parametrize(
    "elsewhere",
    [{"host": "another"}, {"host": "another", "boot": "another"}, {"numbering": "pid:[1]"}],
    ids=["machine", "machine that says more", "container"],
)
def test_a_run_of_another_machine_is_judged_by_what_it_writes(store: RunStore, elsewhere: dict[str, str]) -> None:
    folder = create(store)
    owner = replace(this_process(), pid=2**22 + 1, **elsewhere)
    update_record(
        folder, lambda record: replace(record, status=record.status.change(RunState.RUNNING, supervisor=owner))
    )
    assert read_record(folder).status.state is RunState.RUNNING
    with pytest.raises(StoreError, match=r"still running; cancel it first"):
        store.remove(folder.id)
    folder.analysis.mkdir()  # a reader's, and no sign of life
    for file in folder.path.iterdir():
        if file.is_file():
            os.utime(file, (0, time.time() - SILENT_S - 1))
    assert read_record(folder).status.state is RunState.LOST
    assert "has written nothing for a day" in read_record(folder).status.reason
    store.remove(folder.id)


def test_a_run_that_went_on_before_the_machine_restarted_is_lost(store: RunStore) -> None:
    folder = create(store)
    owner = replace(this_process(), boot="an earlier one")
    update_record(
        folder, lambda record: replace(record, status=record.status.change(RunState.RUNNING, supervisor=owner))
    )
    assert read_record(folder).status.state is RunState.LOST


def test_a_process_is_alive_until_it_ends() -> None:
    assert is_alive(this_process())
    assert not is_alive(Process(this_process().pid, 0.0))
    shifted = replace(this_process(), created_s=this_process().created_s + 120)
    assert is_alive(shifted)  # the clock was set
    assert shifted.started_ticks is not None
    assert not is_alive(replace(this_process(), started_ticks=shifted.started_ticks - 1))
    assert not is_alive(Process(2**22 + 1, 0.0))


ADD_TAGS = """
import sys
from dataclasses import replace
from pathlib import Path
from pipeline_lab.runs.run_folder import RunFolder, update_record
for _ in range(20):
    update_record(RunFolder(Path(sys.argv[1])), lambda record: replace(record, tags=(*record.tags, "x")))
"""


@pytest.mark.slow
def test_no_change_is_lost_between_processes(store: RunStore) -> None:
    folder = create(store)
    writers = [subprocess.Popen([sys.executable, "-c", ADD_TAGS, folder.path]) for _ in range(3)]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    assert len(read_record(folder).tags) == 60


def test_a_failed_write_leaves_the_old_record_and_nothing_else(store: RunStore) -> None:
    folder = create(store)
    before = folder.record.read_text()
    names = sorted(folder.path.iterdir())
    with pytest.raises(TypeError):
        write_record(folder, replace(store.read(folder.id), notes=object()))
    assert folder.record.read_text() == before
    assert sorted(folder.path.iterdir()) == names


def test_the_store_that_is_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert open_store().root.name == "profiles"
    assert not open_store().root.is_relative_to(tmp_path)  # the user's data folder
    (tmp_path / "profiles").mkdir()
    assert open_store().root == tmp_path / "profiles"
    monkeypatch.setenv("PIPELINE_LAB_STORE", str(tmp_path / "named"))
    assert open_store().root == tmp_path / "named"
    assert open_store(Path("given")).root == tmp_path / "given"


def test_windows_are_listed_oldest_first(store: RunStore) -> None:
    folder = create(store)
    assert folder.windows() == []
    for name in ("window-0002", "window-0001"):
        folder.window(name).mkdir(parents=True)
    assert [path.name for path in folder.windows()] == ["window-0001", "window-0002"]


def test_a_copied_folder_is_a_run_of_its_own(store: RunStore) -> None:
    original = create(store)
    shutil.copytree(original.path, original.path.with_name("b-copy"))
    update_record(RunFolder(store.root / "b-copy"), lambda r: replace(r, status=r.status.change(RunState.DONE)))
    assert sorted(record.id for record in store.runs()) == sorted([original.id, "b-copy"])
    store.remove("b-copy")
    assert [record.id for record in store.runs()] == [original.id]


def test_options_that_are_no_object_are_a_damaged_record(store: RunStore) -> None:
    folder = create(store)
    document = json.loads(folder.record.read_text()) | {"options": [1, 2]}
    folder.record.write_text(json.dumps(document))
    with pytest.raises(StoreError, match=r"run\.json is damaged"):
        store.read(folder.id)
