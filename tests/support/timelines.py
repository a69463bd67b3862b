"""A small run whose timeline can be drawn by hand: two steps of 100 ms, each waiting 40 ms; a thread that reads.

python:           train |0--------100|100-------200|, inside it a wait 0-40 and the op AddV2 50-90 of each step
tf_data_private…: Iterator::Map 0-35 and 100-135, inside each DecodeJpeg from 5 to 25 and from 105 to 125
"""

from pathlib import Path

from pipeline_lab.analysis.diagnosis.diagnose import diagnose
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.analysis.timeline.build import build_index
from pipeline_lab.analysis.timeline.index import Index, open_index
from tests.support.xspace import XSpace

MS = 1_000_000
READER = "tf_data_private_threadpool/12345678"


def write_trace(path: Path) -> Path:
    """Write the capture that this module's docstring draws."""
    space = XSpace()
    host = space.plane("/host:CPU")
    python, reader = host.line("python", line_id=1), host.line(READER, line_id=2)
    for step in range(2):
        begin = step * 100_000
        python.event("train", begin, 100_000, step_num=step, _r=1)
        python.event("IteratorGetNextOp::DoCompute", begin, 40_000)
        python.event("model/add:AddV2", begin + 50_000, 40_000)
        reader.event("Iterator::Map", begin, 35_000)
        reader.event("map/decode:DecodeJpeg", begin + 5_000, 20_000)
    space.write(path)
    return path


def make_timeline(folder: Path) -> tuple[Index, Diagnosis]:
    """Analyze that capture and open its index."""
    path = write_trace(folder / "host.xplane.pb")
    diagnosis, made = diagnose(path), folder / "index"
    made.mkdir()
    build_index(path, diagnosis, made)
    return open_index(made), diagnosis
