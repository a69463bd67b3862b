"""How fast traces are read, in which memory, against xprof and protobuf on the same files.

    python -m benchmarks.trace --megabytes 1 30 295

The files are grown from a recorded capture (`grow`). Every reading runs in a process of its own, whose wall time and
peak memory count; "warm" is a second reading in the same process.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.trace.grow import RECORDED, grow

TIMEOUT_S = 1800
OURS = """
import sys, time
from pathlib import Path
from pipeline_lab.trace.xplane import read_xplane
path = Path(sys.argv[1])
def read():
    begin, cpu = time.perf_counter(), time.process_time()
    events = read_xplane(path).event_count
    return time.perf_counter() - begin, time.process_time() - cpu, events
print(*read())
"""
OURS_WARM = OURS.replace("print(*read())", "read()\nprint(*min(read() for _ in range(3)))")
OURS_SALVAGE = OURS.replace("path = Path(sys.argv[1])", "path = Path(sys.argv[1] + '.damaged')")
DIAGNOSIS = """
import sys, time
from pathlib import Path
begin, cpu = time.perf_counter(), time.process_time()
from pipeline_lab.analysis.diagnosis import diagnose
diagnose(Path(sys.argv[1]))
print(time.perf_counter() - begin, time.process_time() - cpu, 0)
"""
XPROF = """
import sys, time
from xprof.convert import raw_to_tool_data
begin, cpu = time.perf_counter(), time.process_time()
data, _ = raw_to_tool_data.xspace_to_tool_data([sys.argv[1]], sys.argv[2], {})
assert data, "xprof returned nothing"
print(time.perf_counter() - begin, time.process_time() - cpu, 0)
"""
PROTOBUF = """
import sys, time
from pathlib import Path
from tests.trace.oracle import parse
begin, cpu = time.perf_counter(), time.process_time()
space = parse(Path(sys.argv[1]).read_bytes())
rows = [(line.timestamp_ns + event.offset_ps // 1000, event.duration_ps // 1000, event.metadata_id)
        for plane in space.planes for line in plane.lines for event in line.events]
print(time.perf_counter() - begin, time.process_time() - cpu, len(rows))
"""
READERS = {
    "ours, warm process": (OURS_WARM, ()),
    "ours, new process": (OURS, ()),
    "ours, nothing compiled": (OURS, ("--recompile",)),
    "ours, damaged file": (OURS_SALVAGE, ()),
    "our whole diagnosis": (DIAGNOSIS, ()),
    "protobuf and Python": (PROTOBUF, ()),
    "xprof input_pipeline_analyzer": (XPROF, ("input_pipeline_analyzer",)),
    "xprof overview_page": (XPROF, ("overview_page",)),
}


@dataclass(frozen=True)
class Reading:
    """One reader on one file: ``process_s`` is the whole process, ``read_s`` and ``cpu_s`` the reading alone."""

    reader: str
    megabytes: float
    events: int
    read_s: float
    cpu_s: float
    process_s: float
    peak_gb: float

    @property
    def row(self) -> str:
        speed = self.megabytes / self.read_s
        return (
            f"{self.reader:<30} {self.megabytes:>8.1f} {self.read_s:>8.2f} {self.cpu_s:>7.2f} {self.process_s:>9.2f} "
            f"{speed:>8.0f} {self.peak_gb:>7.2f}"
        )


def measure(reader: str, path: Path) -> Reading:
    script, extra = READERS[reader]
    environment = dict(os.environ)
    with tempfile.TemporaryDirectory() as scratch:
        if "--recompile" in extra:
            environment["NUMBA_CACHE_DIR"] = scratch
        wrapper = (
            "import json, resource, subprocess, sys, time; begin = time.perf_counter(); "
            f"done = subprocess.run([sys.executable, '-c', {script!r}, *sys.argv[1:]], stdout=-1, text=True); "
            "print(json.dumps([done.returncode, done.stdout, time.perf_counter() - begin, "
            "resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss]))"
        )
        done = subprocess.run(
            [sys.executable, "-c", wrapper, str(path), *extra],
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
            timeout=TIMEOUT_S,
            check=True,
        )
    code, printed, process_s, peak_kib = json.loads(done.stdout)
    if code:
        raise SystemExit(f"{reader} failed on {path.name} with exit code {code}")
    read_s, cpu_s, events = printed.split()[-3:]
    size = path.stat().st_size / 1e6
    return Reading(reader, size, int(events), float(read_s), float(cpu_s), process_s, peak_kib * 1024 / 1e9)


def damaged_copy(path: Path) -> None:
    """Lay a copy beside ``path`` with one byte flipped near its begin, so that all of it is salvaged."""
    data = bytearray(path.read_bytes())
    data[200] ^= 0x40
    path.with_name(path.name + ".damaged").write_bytes(data)


def measure_all(folder: Path, megabytes: list[float], readers: list[str]) -> Iterator[Reading]:
    for size in megabytes:
        path = folder / f"grown_{size:g}.xplane.pb"
        events = grow(RECORDED.read_bytes(), path, int(size * 1e6))
        print(f"\n{path.name}: {path.stat().st_size / 1e6:.1f} MB, {events:,} events", file=sys.stderr)
        if "ours, damaged file" in readers:
            damaged_copy(path)
        for reader in readers:
            yield measure(reader, path)
        for left in folder.iterdir():
            left.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, nargs="+", default=[1, 30, 295])
    parser.add_argument("--readers", nargs="+", choices=READERS, default=list(READERS))
    options = parser.parse_args()
    print(f"{'reader':<30} {'MB':>8} {'read s':>8} {'cpu s':>7} {'process s':>9} {'MB/s':>8} {'peak GB':>7}")
    with tempfile.TemporaryDirectory() as folder:
        for reading in measure_all(Path(folder), options.megabytes, options.readers):
            print(reading.row, flush=True)


if __name__ == "__main__":
    main()
