import gzip
import shutil
from pathlib import Path

import pytest

from pipeline_lab.trace.log_parts import disagree, find_parts, others
from tests.support.xspace import XSpace

SMALL = Path(__file__).parents[1] / "data" / "small_pipeline.xplane.pb"
PYTORCH = gzip.compress(b'{"schemaVersion": 1, "deviceProperties": [], "traceEvents": [{"ph": "X"}]}')


def capture(host: str, event: str) -> bytes:
    space = XSpace()
    space.plane("/host:CPU").line("python").event(event, 0, 10)
    return space.encode(host)


def arrive(log: Path, **files: bytes) -> Path:
    place = log / "plugins" / "profile" / "opened"
    place.mkdir(parents=True)
    for name, data in files.items():
        (place / f"{name}.xplane.pb").write_bytes(data)
    return log


def test_files_of_several_hosts_or_frameworks_may_be_several_jobs(tmp_path):
    log = arrive(tmp_path, a=capture("alpha", "FunctionRun"), b=capture("beta", "PjitFunction(step)"))
    (log / "worker.pt.trace.json.gz").write_bytes(PYTORCH)
    (log / "notes.txt").write_text("seen on Monday")
    parts = find_parts(log)
    assert {part.name: (part.hosts, part.frameworks) for part in parts} == {
        "a.xplane.pb": (("alpha",), ("TensorFlow",)),
        "b.xplane.pb": (("beta",), ("JAX",)),
        "worker.pt.trace.json.gz": (("worker.pt",), ("PyTorch",)),
    }
    assert disagree(parts)
    assert others(log) == ["notes.txt"]


def test_files_of_one_host_are_windows_of_one_job(tmp_path):
    log = arrive(tmp_path, first=capture("alpha", "FunctionRun"), second=capture("alpha", "FunctionRun"))
    assert len(find_parts(log)) == 2
    assert not disagree(find_parts(log))


def test_hosts_of_one_session_were_recorded_at_once(tmp_path):
    session = tmp_path / "train" / "plugins" / "profile" / "2026_01_02"
    session.mkdir(parents=True)
    for host in ("a", "b"):
        (session / f"{host}.xplane.pb").write_bytes(capture(host, "FunctionRun"))
    parts = find_parts(tmp_path)
    assert [part.hosts for part in parts] == [("a", "b")]
    assert not disagree(parts)


def test_folders_of_several_jobs_are_parts(tmp_path):
    for job in ("one", "two"):
        session = tmp_path / "logs" / job / "plugins" / "profile" / "2026_01_02"
        session.mkdir(parents=True)
        (session / f"{job}.xplane.pb").write_bytes(capture(job, "FunctionRun"))
    (tmp_path / "logs" / "empty").mkdir()
    parts = find_parts(tmp_path)
    assert [(part.name, part.hosts) for part in parts] == [("one", ("one",)), ("two", ("two",))]
    assert disagree(parts)


def test_what_was_derived_from_a_capture_belongs_to_it(tmp_path):
    shutil.copy(SMALL, tmp_path / "host.xplane.pb")
    (tmp_path / "host.overview_page.pb").write_bytes(b"")
    (part,) = find_parts(tmp_path)
    assert [path.name for path in part.paths] == ["host.overview_page.pb", "host.xplane.pb"]
    assert part.frameworks == ("TensorFlow",)


@pytest.mark.parametrize("data", [b"\x0a", b"\xff" * 40, b""])
def test_a_damaged_file_is_named_by_its_file(tmp_path, data):
    (tmp_path / "broken.xplane.pb").write_bytes(data)
    (part,) = find_parts(tmp_path)
    assert part.frameworks == ()
