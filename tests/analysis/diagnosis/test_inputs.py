"""Which files a diagnosis is made from."""

import shutil
from pathlib import Path

import pytest

from pipeline_lab.analysis.diagnosis import inputs
from pipeline_lab.analysis.diagnosis.inputs import NEWEST, WindowList, version_of, window_paths
from pipeline_lab.analysis.diagnosis.saved import fingerprint_inputs
from pipeline_lab.runs.run_folder import RunFolder


def record(run: RunFolder, window: int, name: str) -> None:
    path = run.window(f"window-{window:04d}") / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


def test_of_a_run_in_progress_only_the_newest_windows_are_looked_into_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, looked = RunFolder(tmp_path), []
    listing, names_in = WindowList(run), inputs._names_in
    monkeypatch.setattr(inputs, "_names_in", lambda folder: looked.append(folder) or names_in(folder))
    assert listing.look() == []
    for window in range(2 * NEWEST):
        record(run, window, "a.xplane.pb")
        assert listing.look() == window_paths(run)
    looked.clear()
    record(run, 2 * NEWEST - 1, "b.xplane.pb.gz")  # from another process, later
    record(run, 0, "b.xplane.pb")
    assert [Path(path).name for path in listing.look()] == ["a.xplane.pb"] * 2 * NEWEST + ["b.xplane.pb.gz"]
    assert len(looked) == 1 + NEWEST
    assert listing.look(everywhere=True) == window_paths(run)
    assert len(listing.look()) == 2 * NEWEST + 2


def test_of_a_run_in_progress_only_the_newest_windows_change(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    listing = WindowList(run)

    def digest(listing: WindowList, *, everywhere: bool = False) -> bytes:
        listing.look(everywhere=everywhere)
        return listing.digest()

    digests = []
    for window in range(2 * NEWEST):
        record(run, window, "a.xplane.pb")
        digests.append(digest(listing))
        assert digests[-1] == digest(WindowList(run))
    assert len(set(digests)) == 2 * NEWEST
    oldest, newest = Path(window_paths(run)[0]), Path(window_paths(run)[-1])
    oldest.write_bytes(b"more")
    assert digest(listing) == digests[-1] != digest(WindowList(run))
    newest.write_bytes(b"more")
    assert digest(listing) != digests[-1]
    assert digest(listing, everywhere=True) == digest(WindowList(run)) == digest(listing)
    newest.unlink()
    assert digest(listing) == digest(WindowList(run))
    shutil.rmtree(oldest.parent)
    assert digest(listing) == digest(WindowList(run))
    assert version_of(str(run.window("gone"))) == ""


def test_a_window_without_a_trace_is_looked_into_until_it_has_one(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    listing = WindowList(run)
    for window in range(2 * NEWEST):
        record(run, window, "notes.txt" if window == 0 else "a.xplane.pb")
    assert len(listing.look()) == 2 * NEWEST - 1
    record(run, 0, "a.xplane.pb")
    assert len(listing.look()) == 2 * NEWEST


def test_windows_of_a_longer_number_come_last(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    listing = WindowList(run)
    for window in range(9990, 10030):
        record(run, window, "a.xplane.pb")
        assert [Path(path).parent.name for path in listing.look()][-1] == f"window-{window:04d}"
        assert len(listing._settled) == max(0, window - 9990 + 1 - NEWEST)


def test_windows_that_are_the_newest_again_are_looked_into_again(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    listing = WindowList(run)
    for window in range(2 * NEWEST):
        record(run, window, "a.xplane.pb")
    listing.look()
    for window in range(NEWEST + 4, 2 * NEWEST):
        shutil.rmtree(run.window(f"window-{window:04d}"))
    listing.look()
    record(run, NEWEST - 1, "b.xplane.pb")
    assert listing.look() == window_paths(run)


def test_a_run_named_by_a_relative_path_has_the_same_fingerprint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunFolder(tmp_path / "run")
    record(run, 0, "a.xplane.pb")
    run.record.touch()
    monkeypatch.chdir(tmp_path)
    listing = WindowList(RunFolder(Path("run")))
    listing.look()
    assert fingerprint_inputs(Path("run"), listing) == fingerprint_inputs(run.path)
