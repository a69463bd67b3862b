"""Events as columns, Parquet and Chrome JSON."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline_lab.errors import TraceReadError
from pipeline_lab.trace import event_files as export
from pipeline_lab.trace.event_files import SCHEMA, event_batches, write_events
from pipeline_lab.trace.schema import Trace
from pipeline_lab.trace.sources import read_trace
from pipeline_lab.trace.xplane.xspace import read_xplane
from tests.support.xspace import XSpace
from tests.trace.checks import events

EPOCH_NS = 1_700_000_000 * 10**9
SMALL = Path(__file__).parents[1] / "data" / "small_pipeline.xplane.pb"


def two_windows(tmp_path: Path) -> list[Trace]:
    traces = []
    for k in range(2):
        space = XSpace()
        line = space.plane("/host:CPU").line("python", line_id=5)
        line.event(f"Iterator::Root::Map{k}", 1.5, 2, display="Iterator::Map").event("b", -1.25, 0)
        space.environment(EPOCH_NS + k * 10**9, EPOCH_NS + (k + 1) * 10**9)
        traces.append(read_xplane(space.write(tmp_path / f"w{k}/h.xplane.pb"), window=f"w{k}"))
    return traces


def test_batches_have_a_row_per_event(tmp_path: Path) -> None:
    table = pa.Table.from_batches(event_batches(two_windows(tmp_path)[0]), SCHEMA)
    assert table.to_pylist()[0] == {
        "window": "w0",
        "host": "host",
        "plane": "/host:CPU",
        "line": "python",
        "line_id": 5,
        "name": "Iterator::Root::Map0",
        "start_ns": 1_500,
        "duration_ns": 2_000,
        "origin_epoch_ns": EPOCH_NS,
    }
    assert table["start_ns"].to_pylist() == [1_500, -1_250]


def test_parquet_holds_every_event_of_every_window(tmp_path: Path) -> None:
    assert write_events(two_windows(tmp_path), tmp_path / "e.parquet") == 4
    rows = pq.read_table(tmp_path / "e.parquet").to_pylist()
    assert [(row["window"], row["name"]) for row in rows] == [
        ("w0", "Iterator::Root::Map0"),
        ("w0", "b"),
        ("w1", "Iterator::Root::Map1"),
        ("w1", "b"),
    ]


@pytest.mark.parametrize("name", ["e.json", "e.trace.json.gz"])
def test_chrome_json_reads_back_the_same(tmp_path: Path, name: str) -> None:
    trace = read_xplane(SMALL)
    assert write_events([trace], tmp_path / name) == trace.event_count
    again = read_trace(tmp_path / name)
    assert events(again) == events(trace)
    assert again.salvage is None


def test_windows_that_know_their_time_lie_on_one_axis(tmp_path: Path) -> None:
    write_events(two_windows(tmp_path), tmp_path / "e.json")
    listed = json.loads((tmp_path / "e.json").read_text())["traceEvents"]
    assert [event["ts"] for event in listed if event.get("ph") == "X"] == [1.5, -1.25, 1_000_001.5, 999_998.75]
    names = [event["args"]["name"] for event in listed if event.get("name") == "process_name"]
    assert "w1 host /host:CPU" in names


def test_long_lines_come_in_several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "BATCH_EVENTS", 10)
    trace = read_xplane(SMALL)
    batches = list(event_batches(trace))
    assert max(batch.num_rows for batch in batches) == 10
    assert sum(batch.num_rows for batch in batches) == trace.event_count


def test_other_endings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceReadError, match=r"e\.csv: events are written as \.parquet"):
        write_events([], tmp_path / "e.csv")


def test_a_failure_leaves_no_file(tmp_path: Path) -> None:
    def broken() -> list[Trace]:
        raise TraceReadError("gone.")

    with pytest.raises(TraceReadError):
        write_events((trace for trace in broken()), tmp_path / "e.parquet")
    assert not list(tmp_path.iterdir())
    with pytest.raises(TraceReadError, match="cannot be written"):
        write_events([], tmp_path / "no/e.parquet")


def test_a_file_is_there_for_others_as_a_report_is(tmp_path: Path) -> None:
    write_events(two_windows(tmp_path), tmp_path / "e.json")
    assert (tmp_path / "e.json").stat().st_mode & 0o777 == 0o644


def test_a_plane_writes_each_of_its_names_once_however_many_threads_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace, texts, dumps = read_xplane(SMALL), list[str](), json.dumps

    def noting(value: object) -> str:
        texts.extend([value] if isinstance(value, str) else [])
        return dumps(value)

    monkeypatch.setattr(json, "dumps", noting)
    write_events([trace], tmp_path / "e.json")
    names = [pair for plane in trace.planes for pair in zip(plane.names, plane.display_names, strict=True)]
    assert len(texts) == sum(1 + (name != short) for name, short in names)
