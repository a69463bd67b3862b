"""Logs that become runs: linked or copied in, found again by the diagnosis, gone when nobody keeps them."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_lab.errors import StoreError
from pipeline_lab.runs import opened_logs
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.run_folder import RunFolder, update_record
from pipeline_lab.runs.store import RunStore

DAY_S = 24 * 3600


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / "profiles")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return a log directory with one trace, and with what does not belong to it."""
    folder = tmp_path / "logs"
    session = folder / "train" / "plugins" / "profile" / "2026_01_02"
    session.mkdir(parents=True)
    (session / "host.xplane.pb").write_bytes(b"trace")
    for name in ("model.ckpt", "saved_model.pb", "train/events.out.tfevents.1.h", ".hidden.xplane.pb"):
        (folder / name).write_bytes(b"other")
    (folder / "linked.xplane.pb").symlink_to("/etc/passwd")
    return folder


def open_log(store: RunStore, path: Path) -> RunFolder:
    arrival = opened_logs.new_arrival(store)
    opened_logs.bring(path, arrival)
    return opened_logs.adopt(store, arrival, path.name)


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_of_a_folder_only_the_log_comes(store: RunStore, log: Path) -> None:
    folder = open_log(store, log)
    assert files(folder.opened) == ["logs/train/plugins/profile/2026_01_02/host.xplane.pb"]
    assert store.read(folder.id).name == "logs"


def test_a_log_without_a_trace_brings_what_explains_it(store: RunStore, log: Path) -> None:
    folder = open_log(store, log / "train" / "events.out.tfevents.1.h")
    assert files(folder.opened) == ["events.out.tfevents.1.h"]


def test_a_folder_without_a_log_is_refused(store: RunStore, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(StoreError, match="holds no profile log"):
        open_log(store, tmp_path / "empty")


@pytest.mark.parametrize("links", [True, False])
def test_deleting_the_run_leaves_the_users_log(
    store: RunStore, log: Path, links: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not links:
        monkeypatch.setattr(os, "link", _no_links)
    trace = log / "train" / "plugins" / "profile" / "2026_01_02" / "host.xplane.pb"
    folder = open_log(store, trace)
    mine = folder.opened / "plugins" / "profile" / "opened" / "host.xplane.pb"
    assert mine.samefile(trace) is links
    store.remove(folder.id)
    assert trace.read_bytes() == b"trace"
    assert not folder.path.exists()


def _no_links(*_: object) -> None:
    raise OSError(18, "Invalid cross-device link")


def test_two_files_of_one_plain_name_never_overwrite_each_other(store: RunStore, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for name in ("a b.xplane.pb", "a_b.xplane.pb"):
        (folder / name).write_text(name)
    with pytest.raises(StoreError, match="same name"):
        open_log(store, folder)
    assert [(folder / name).read_text() for name in ("a b.xplane.pb", "a_b.xplane.pb")] == [
        "a b.xplane.pb",
        "a_b.xplane.pb",
    ]


def test_what_nobody_keeps_goes_after_a_day(store: RunStore, log: Path) -> None:
    kept, unkept, fresh = (open_log(store, log) for _ in range(3))
    opened_logs.keep(kept)
    now_s = store.read(fresh.id).status.created_s
    for folder in (kept, unkept):
        age(folder, 2 * DAY_S)
    half = opened_logs.new_arrival(store)
    os.utime(half, (now_s - 2 * DAY_S,) * 2)
    other = opened_logs.new_arrival(store)
    opened_logs.discard_stale(store, now_s)
    assert {run.id for run in store.runs()} == {kept.id, fresh.id}
    assert (half.exists(), other.exists()) == (False, True)


def age(folder: RunFolder, by_s: float) -> None:
    update_record(
        folder,
        lambda record: replace(record, status=replace(record.status, created_s=record.status.created_s - by_s)),
    )


@pytest.mark.slow
@given(st.text(max_size=60) | st.lists(st.sampled_from(["..", ".", "", "a", "x.pb"])).map("/".join))
def test_no_name_leads_out(name: str) -> None:
    placed = opened_logs.place(name)
    assert not placed.is_absolute()
    assert placed.parts
    assert all(part not in ("..", ".", "") and not part.startswith(".") and "\0" not in part for part in placed.parts)


def test_a_log_that_cannot_be_read_is_listed_as_failed(store: RunStore) -> None:
    log = opened_logs.adopt(store, opened_logs.new_arrival(store), "h")
    opened_logs.note_reading(log, "It is empty; record it again.")
    assert store.read(log.id).status.state is RunState.FAILED
    assert store.read(log.id).status.reason == "It is empty; record it again."
    opened_logs.note_reading(log, "")
    assert (store.read(log.id).status.state, store.read(log.id).status.reason) == (RunState.DONE, "")


def test_what_nobody_kept_goes_when_the_next_log_comes(store: RunStore) -> None:
    old = opened_logs.adopt(store, opened_logs.new_arrival(store), "old")
    age(old, by_s=2 * DAY_S)
    opened_logs.new_arrival(store)
    assert store.runs() == []


def test_copying_tells_how_far_it_is_and_can_be_ended(
    store: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def other_disk(*_: Path) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", other_disk)
    monkeypatch.setattr(opened_logs, "BLOCK", 4)
    log = tmp_path / "h.xplane.pb"
    log.write_bytes(b"0123456789")
    told: list[tuple[int, int]] = []
    arrival = opened_logs.new_arrival(store)
    opened_logs.bring(log, arrival, lambda done, total: told.append((done, total)))
    assert told == [(4, 10), (8, 10), (10, 10)]
    assert next(arrival.rglob("*.pb")).read_bytes() == b"0123456789"

    def stop(*_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        opened_logs.bring(log, opened_logs.new_arrival(store), stop)
