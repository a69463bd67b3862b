"""``pipeline-lab events``: what people take to their own tools."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from pipeline_lab.cli.application import build_app
from tests.support.xspace import XSpace


@pytest.fixture
def log(tmp_path: Path) -> Path:
    space = XSpace()
    line = space.plane("/host:CPU").line("python")
    line.event("train", start_us=0, duration_us=30).event("IteratorGetNext", start_us=5, duration_us=10)
    return space.write(tmp_path / "plugins/profile/now/trainer.xplane.pb").parents[3]


def test_parquet_holds_every_event(log: Path, tmp_path: Path) -> None:
    output = tmp_path / "events.parquet"
    done = CliRunner().invoke(build_app(), ["events", str(log), "--output", str(output)])
    assert (done.exit_code, done.stdout) == (0, "")
    assert "2 events" in done.stderr
    rows = pq.read_table(output).select(["name", "start_ns", "duration_ns"]).to_pylist()
    assert rows == [
        {"name": "train", "start_ns": 0, "duration_ns": 30_000},
        {"name": "IteratorGetNext", "start_ns": 5_000, "duration_ns": 10_000},
    ]


def test_chrome_json_is_what_perfetto_reads(log: Path, tmp_path: Path) -> None:
    output = tmp_path / "events.json"
    assert CliRunner().invoke(build_app(), ["events", str(log), "-o", str(output)]).exit_code == 0
    names = [event.get("name") for event in json.loads(output.read_text())["traceEvents"] if event.get("ph") == "X"]
    assert names == ["train", "IteratorGetNext"]


def test_another_ending_is_one_sentence_and_no_file(log: Path, tmp_path: Path) -> None:
    output = tmp_path / "events.xlsx"
    done = CliRunner().invoke(build_app(), ["events", str(log), "--output", str(output)])
    assert done.exit_code == 1
    assert "choose one of these endings" in " ".join(done.stderr.split())
    assert not output.exists()
