"""Whatever the user points at, its traces are found, or a sentence says what is there instead."""

import gzip
import shutil
import tarfile
import zipfile
from pathlib import Path

import pytest

from pipeline_lab.errors import TraceIncompleteError, TraceReadError
from pipeline_lab.trace.schema import Trace
from pipeline_lab.trace.sources import FileKind, SourceKind, find_traces, open_traces, read_trace
from tests.support.xspace import XSpace
from tests.trace.test_chrome_trace import TWO, encode


def space(name: str = "e") -> XSpace:
    made = XSpace()
    made.plane("/host:CPU").line("python").event(name, start_us=1, duration_us=1, k=3)
    return made


def logdir(root: Path, *windows: str, hosts: tuple[str, ...] = ("a", "b")) -> Path:
    for window in windows:
        for host in hosts:
            space(f"{window} {host}").write(root / "plugins/profile" / window / f"{host}.xplane.pb", host=host)
    return root


def first_names(traces: list[Trace]) -> list[str]:
    return [trace.planes[0].names[0] for trace in traces]


def test_a_log_directory_gives_each_host_of_each_window(tmp_path: Path) -> None:
    root = logdir(tmp_path / "log", "w1", "w2")
    (root / "events.out.tfevents.1.h.profile-empty").touch()
    traces = list(open_traces(root))
    assert [(trace.window, trace.host) for trace in traces] == [("w1", "a"), ("w1", "b"), ("w2", "a"), ("w2", "b")]
    assert first_names(traces) == ["w1 a", "w1 b", "w2 a", "w2 b"]
    with find_traces(root) as source:
        assert source.kind is SourceKind.LOGDIR
        assert (source.windows, source.hosts) == (("w1", "w2"), ("a", "b"))
        assert source.size_bytes == sum(trace.size_bytes for trace in traces)


def test_windows_of_several_runs_stay_apart(tmp_path: Path) -> None:
    logdir(tmp_path / "train", "w")
    logdir(tmp_path / "eval", "w")
    assert {trace.window for trace in open_traces(tmp_path)} == {"train/w", "eval/w"}


def test_traces_are_read_one_at_a_time(tmp_path: Path) -> None:
    traces = open_traces(logdir(tmp_path, "w1", "w2"))
    next(traces)
    shutil.rmtree(tmp_path / "plugins/profile/w2")
    assert [trace.window for trace in traces] == ["w1", "w2", "w2"]


def test_a_run_folder_is_called_that(tmp_path: Path) -> None:
    logdir(tmp_path, "w")
    (tmp_path / "run.json").write_text("{}")
    with find_traces(tmp_path) as source:
        assert source.kind is SourceKind.RUN


@pytest.mark.parametrize("depth", ["", "plugins", "plugins/profile", "plugins/profile/w"])
def test_any_folder_on_the_way_will_do(tmp_path: Path, depth: str) -> None:
    logdir(tmp_path, "w")
    assert len(list(open_traces(tmp_path / depth))) == 2


def test_lone_files_are_read_whatever_they_are_called(tmp_path: Path) -> None:
    plain = space().write(tmp_path / "h.xplane.pb", host="")
    packed = tmp_path / "upload.bin"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    json = tmp_path / "my trace.json"
    json.write_bytes(encode(*TWO))
    assert read_trace(plain).host == "h"
    assert read_trace(plain).window == ""
    assert first_names([read_trace(packed)]) == ["e"]
    assert read_trace(json).event_count == 2


def test_packed_twice_and_cut_short_still_reads(tmp_path: Path) -> None:
    many = XSpace()
    line = many.plane("/host:CPU").line("python")
    for k in range(2_000):
        line.event("e", start_us=k * k % 7919, duration_us=k % 13, k=k * k)
    packed = gzip.compress(gzip.compress(many.encode()))
    path = tmp_path / "h.xplane.pb.gz"
    path.write_bytes(packed[: len(packed) // 2])
    trace = read_trace(path)
    assert 200 < trace.event_count < 2_000
    assert trace.salvage is not None
    assert trace.salvage.events_kept == trace.event_count
    assert "cut off" in trace.salvage.reason


def test_the_raw_trace_comes_before_what_was_made_from_it(tmp_path: Path) -> None:
    folder = logdir(tmp_path, "w", hosts=("a",)) / "plugins/profile/w"
    (folder / "a.trace.json.gz").write_bytes(gzip.compress(encode(*TWO)))
    (folder / "a.input_pipeline.pb").write_bytes(b"\x08\x01")
    with find_traces(tmp_path) as source:
        assert [file.kind for file in source.files] == [FileKind.XPLANE]
        assert [path.name for path in source.derived] == ["a.input_pipeline.pb"]
    (folder / "a.xplane.pb").write_bytes(b"")
    with find_traces(tmp_path) as source:
        assert [file.kind for file in source.files] == [FileKind.TRACE_JSON]
        assert "0 bytes" in source.notes[0]


def test_a_raw_trace_that_cannot_be_read_gives_way_to_what_was_made_from_it(tmp_path: Path) -> None:
    folder = logdir(tmp_path, "w", hosts=("a",)) / "plugins/profile/w"
    made = folder / "a.trace.json.gz"
    made.write_bytes(gzip.compress(encode(*TWO)))
    (folder / "a.xplane.pb").write_bytes(b"no trace at all")
    (trace,) = open_traces(tmp_path)
    assert (trace.window, trace.host) == ("w", "a")
    assert trace.event_count == read_trace(made).event_count > 0
    assert trace.salvage is not None
    assert (trace.salvage.bytes_lost, trace.salvage.events_kept) == (15, trace.event_count)
    assert "no profiler planes" in trace.salvage.reason
    assert trace.salvage.reason.endswith("a.trace.json.gz was read in its place.")
    made.write_bytes(b"nor this")
    with pytest.raises(TraceReadError, match=r"a\.xplane\.pb holds no profiler planes; .*, so choose such a file\."):
        list(open_traces(tmp_path))


@pytest.mark.parametrize("kind", ["zip", "tar", "gztar"])
def test_archives_are_unpacked_and_cleaned_up(tmp_path: Path, kind: str) -> None:
    root = logdir(tmp_path / "log", "w1", "w2")
    archive = Path(shutil.make_archive(str(tmp_path / "packed"), kind, tmp_path, "log"))
    shutil.rmtree(root)
    with find_traces(archive) as source:
        assert source.path == archive
        assert source.root.name == "log"
        unpacked = source.root
    assert not unpacked.exists()
    traces = list(open_traces(archive))
    assert first_names(traces) == ["w1 a", "w1 b", "w2 a", "w2 b"]
    assert traces[3].planes[0].lines[0].stats.texts([0], "k") == ["3"]


def test_an_unreadable_file_among_others_is_said(tmp_path: Path) -> None:
    root = logdir(tmp_path, "w")
    (root / "plugins/profile/w/a.xplane.pb").write_bytes(b"no trace at all")
    bad, good = open_traces(root)
    assert bad.planes == ()
    assert bad.salvage is not None
    assert bad.salvage.bytes_lost == 15
    assert "no profiler planes" in bad.salvage.reason
    assert good.event_count == 1


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({}, "is empty"),
        ({"readme.txt": b"hello"}, "no profiler trace"),
        ({"events.out.tfevents.17.host": b"x"}, "no profile; record one"),
        ({"plugins/profile/w/h.xplane.pb": b""}, "0 bytes"),
        ({"plugins/profile/w/h.xplane.pb": b"junk"}, "no profiler planes"),
        ({"plugins/profile/w/h.trace.json": b'{"deviceProperties": [], "traceEvents": []}'}, "PyTorch"),
    ],
)
def test_folders_without_a_trace_are_told_apart(tmp_path: Path, files: dict[str, bytes], sentence: str) -> None:
    for name, data in files.items():
        path = tmp_path / "log" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (tmp_path / "log").mkdir(exist_ok=True)
    with pytest.raises(TraceReadError, match=sentence):
        list(open_traces(tmp_path / "log"))


def test_derived_files_alone_are_incomplete(tmp_path: Path) -> None:
    (tmp_path / "h.overview_page.pb").write_bytes(b"\x08\x01")
    for path in (tmp_path, tmp_path / "h.overview_page.pb"):
        with pytest.raises(TraceIncompleteError, match="derived"):
            list(open_traces(path))
        with find_traces(path) as source:
            assert source.kind is SourceKind.DERIVED


def test_lone_paths_without_a_trace_are_a_sentence(tmp_path: Path) -> None:
    events = tmp_path / "events.out.tfevents.17.host"
    events.write_bytes(b"x")
    with pytest.raises(TraceReadError, match="holds no profile"):
        read_trace(events)
    with pytest.raises(TraceReadError, match="does not exist"):
        read_trace(tmp_path / "gone")


def test_one_trace_is_asked_of_a_place_with_several(tmp_path: Path) -> None:
    with pytest.raises(TraceReadError, match="holds 2 traces"):
        read_trace(logdir(tmp_path, "w"))


def test_links_and_hidden_folders_are_not_followed(tmp_path: Path) -> None:
    logdir(tmp_path / "elsewhere", "w")
    logdir(tmp_path / "log/.scratch", "w")
    (tmp_path / "log/link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(TraceReadError, match="is empty"):
        list(open_traces(tmp_path / "log"))


def test_hostile_archives_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        archive.writestr("../h.xplane.pb", b"x")
    with tarfile.open(tmp_path / "t.tar.gz", "w:gz") as archive_:
        archive_.addfile(tarfile.TarInfo("/h.xplane.pb"))
    for name in ("z.zip", "t.tar.gz"):
        with pytest.raises(TraceReadError, match="outside"):
            list(open_traces(tmp_path / name))


def test_a_damaged_member_costs_only_itself(tmp_path: Path) -> None:
    root = logdir(tmp_path / "log", "w1", hosts=("a", "b"))
    packed = Path(shutil.make_archive(str(tmp_path / "log"), "zip", root))
    with zipfile.ZipFile(packed) as archive:
        second = archive.getinfo("plugins/profile/w1/b.xplane.pb")
    content = bytearray(packed.read_bytes())
    content[second.header_offset + 30 + len(second.filename) + 5] ^= 0xFF
    packed.write_bytes(content)
    with find_traces(packed) as source:
        assert "a" in [file.host for file in source.files]
        assert any("b.xplane.pb in log.zip is damaged" in note for note in source.notes)


def test_archives_beside_other_files_are_searched_too(tmp_path: Path) -> None:
    """As when several files are uploaded together."""
    logdir(tmp_path / "packed", "w1", hosts=("a",))
    space("lone").write(tmp_path / "packed2" / "b.xplane.pb", host="b")
    log = logdir(tmp_path / "log", "w2", hosts=("a",))
    shutil.make_archive(str(log / "one"), "zip", tmp_path / "packed")
    shutil.make_archive(str(log / "two"), "gztar", tmp_path / "packed2")
    (log / "broken.zip").write_bytes(b"PK\x03\x04 not really")
    with find_traces(log) as source:
        assert [(file.window, file.host) for file in source.files] == [("two", "b"), ("w1", "a"), ("w2", "a")]
        assert [note.split(" is ")[0] for note in source.notes] == ["broken.zip"]
        assert [file.read().event_count for file in source.files] == [1, 1, 1]


def test_a_local_trace_counts_as_trace_events(tmp_path: Path) -> None:
    (tmp_path / "local.trace").write_bytes(b"\0")
    with find_traces(tmp_path / "local.trace") as source:
        assert (source.kind, source.files[0].kind) == (SourceKind.TRACE_JSON, FileKind.LEGACY)
