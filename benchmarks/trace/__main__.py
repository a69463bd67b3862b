"""How fast traces are read, in which memory, against xprof and protobuf on the same files.

    python -m benchmarks.trace            # everything, about half an hour
    python -m benchmarks.trace --quick    # what the budgets need, under ten minutes

The files are grown from a recorded capture (`grow`). Every reading runs in a process of its own, whose wall time and
peak memory count, and the median of several such processes is shown; "warm" is the median of three more readings in
the same process. xprof and protobuf stop at 2 GiB, so the largest file is read by us alone. xprof-rs, a compiled reader, is
installed into a folder of its own for the time of the benchmark; where that fails a line says so.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.trace.budgets import (
    COLD,
    COMPILED_PEER,
    PAST_PROTOBUF_MB,
    PEER,
    SPINE,
    WARM,
    Reading,
    statements,
)
from benchmarks.trace.grow import RECORDED, grow

TIMEOUT_S = 1800
BUDGET_MB = 295.0
OURS = """
import sys, time
from pathlib import Path
from pipeline_lab.trace.xplane.xspace import read_xplane
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
import re, statistics, sys, threading, time
from pathlib import Path
from pipeline_lab.analysis.diagnosis.diagnose import diagnose
peak = [0]
def watch():
    while True:
        peak[0] = max(peak[0], int(re.search(r"RssAnon:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]))
        time.sleep(0.02)
def read():
    begin, cpu = time.perf_counter(), time.process_time()
    events = diagnose(Path(sys.argv[1])).source.events
    return time.perf_counter() - begin, time.process_time() - cpu, events
read()
walls, cpus, events = zip(*(read() for _ in range(3)))
if Path("/proc/self/status").exists():
    threading.Thread(target=watch, daemon=True).start()
    read()
print(statistics.median(walls), statistics.median(cpus), events[0], peak[0] * 1024 / 1e9)
"""
COMMAND = """
import subprocess, sys, time
begin = time.perf_counter()
subprocess.run([sys.executable, "-m", "pipeline_lab", "analyze", sys.argv[1], "--json"], stdout=-3, stderr=-3, check=True)
print(time.perf_counter() - begin, 0, 0)
"""
XPROF = """
import sys, tempfile, time
from pathlib import Path
from xprof.convert import raw_to_tool_data
with tempfile.TemporaryDirectory(dir=Path(sys.argv[1]).parent) as session:  # xprof keeps its answer beside the file
    file = Path(session, "host.xplane.pb")
    file.hardlink_to(sys.argv[1])
    begin, cpu = time.perf_counter(), time.process_time()
    data, _ = raw_to_tool_data.xspace_to_tool_data([str(file)], sys.argv[2], {})
    assert data, "xprof returned nothing"
    print(time.perf_counter() - begin, time.process_time() - cpu, 0)
"""
XPROF_RS = """
import subprocess, sys, tempfile, time
from pathlib import Path
with tempfile.TemporaryDirectory(dir=Path(sys.argv[1]).parent) as session:
    Path(session, "host.xplane.pb").hardlink_to(sys.argv[1])
    begin = time.perf_counter()
    subprocess.run([sys.argv[2], "get_overview", session], stdout=-3, check=True)
    print(time.perf_counter() - begin, 0, 0)
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
SCAN_TO_GAPS = """
import statistics, sys, time
from pathlib import Path
from pipeline_lab.analysis.activity.activity import Activity
from pipeline_lab.analysis.idle.idle_gaps import find_gaps
from pipeline_lab.analysis.input.input_stalls import find_stalls
from pipeline_lab.analysis.steps.recorded_steps import find_steps
from pipeline_lab.trace.xplane.xspace import read_xplane
def read():
    begin, cpu = time.perf_counter(), time.process_time()
    trace = read_xplane(Path(sys.argv[1]))
    activity = Activity(trace)
    find_stalls(activity, find_steps(activity))
    find_gaps(activity)
    return time.perf_counter() - begin, time.process_time() - cpu, trace.event_count
read()
walls, cpus, events = zip(*(read() for _ in range(3)))
print(statistics.median(walls), statistics.median(cpus), events[0])
"""
READERS = {
    SPINE: (SCAN_TO_GAPS, ()),
    WARM: (DIAGNOSIS, ()),
    COLD: (COMMAND, ()),
    "our scan, warm process": (OURS_WARM, ()),
    "our scan, new process": (OURS, ()),
    "our scan, nothing compiled": (OURS, ("--recompile",)),
    "our scan, damaged file": (OURS_SALVAGE, ()),
    PEER: (XPROF, ("input_pipeline_analyzer",)),
    COMPILED_PEER: (XPROF_RS, ("xprof-rs",)),
    "xprof overview_page": (XPROF, ("overview_page",)),
    "protobuf and Python": (PROTOBUF, ()),
}
OURS_ONLY = tuple(name for name in READERS if name.startswith("our "))
QUICK_FROM_30_MB = (SPINE, WARM, COLD, PEER, COMPILED_PEER)
"""What a quick round reads of files larger than 30 MB."""
REPEATS = 3


def measure(reader: str, path: Path) -> Reading:
    script, extra = READERS[reader]
    environment = dict(os.environ)
    with tempfile.TemporaryDirectory() as scratch:
        environment["PIPELINE_LAB_CACHE"] = f"{scratch}/analyses"
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
    read_s, cpu_s, events, *anonymous = printed.split("\n")[-2].split()
    size = path.stat().st_size / 1e6
    peak_gb, anonymous_gb = peak_kib * 1024 / 1e9, float(anonymous[0]) if anonymous else None
    return Reading(reader, size, int(events), float(read_s), float(cpu_s), process_s, peak_gb, anonymous_gb)


def measure_in_turn(readers: list[str], path: Path) -> Iterator[Reading]:
    """Measure readers in turn, some times over, and yield of each the reading with the median time.

    What a busy machine does to one of them it does to all. A warm reading is a median already.
    """
    found: dict[str, list[Reading]] = {reader: [] for reader in readers}
    for turn in range(REPEATS):
        for reader in readers:
            is_once = reader in (SPINE, WARM) or not (reader in OURS_ONLY or reader in (PEER, COMPILED_PEER))
            if turn == 0 or not is_once:
                found[reader].append(measure(reader, path))
    for readings in found.values():
        yield sorted(readings, key=lambda one: one.read_s)[len(readings) // 2]


def damaged_copy(path: Path) -> None:
    """Lay a copy beside ``path`` with one byte flipped near its begin, so that all of it is salvaged."""
    data = bytearray(path.read_bytes())
    data[200] ^= 0x40
    path.with_name(path.name + ".damaged").write_bytes(data)


def measure_all(folder: Path, megabytes: list[float], readers: list[str], quick: bool) -> Iterator[Reading]:
    for size in megabytes:
        path = folder / f"grown_{size:g}.xplane.pb"
        events = grow(RECORDED.read_bytes(), path, int(size * 1e6))
        print(f"\n{path.name}: {path.stat().st_size / 1e6:.1f} MB, {events:,} events", file=sys.stderr)
        chosen = [name for name in readers if size < PAST_PROTOBUF_MB or name in OURS_ONLY]
        if quick and size > 30:
            chosen = [name for name in chosen if name in QUICK_FROM_30_MB]
        if "our scan, damaged file" in chosen:
            damaged_copy(path)
        yield from measure_in_turn(chosen, path)
        for left in folder.iterdir():
            left.unlink()


def install_peer(folder: Path) -> bool:
    """Install the compiled peer into a folder and put it on the path; say why where that fails."""
    steps = ([sys.executable, "-m", "venv", folder], [folder / "bin" / "pip", "install", "-q", "xprof-rs==0.1.3"])
    for step in steps:
        done = subprocess.run(step, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            print(f"{COMPILED_PEER} is left out: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
            return False
    os.environ["PATH"] = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, nargs="+", default=[1, 30, BUDGET_MB, 2200])
    parser.add_argument("--readers", nargs="+", choices=READERS, default=list(READERS))
    parser.add_argument("--quick", action="store_true", help="of files larger than 30 MB only what the budgets need")
    options = parser.parse_args()
    print(
        f"{'reader':<30} {'MB':>8} {'read s':>8} {'cpu s':>7} {'process s':>9} {'MB/s':>8} {'peak GB':>7} {'anon GB':>7}"
    )
    readings = []
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as environment:
        if COMPILED_PEER in options.readers and not shutil.which("xprof-rs") and not install_peer(Path(environment)):
            options.readers.remove(COMPILED_PEER)
        for reading in measure_all(Path(folder), options.megabytes, options.readers, options.quick):
            readings.append(reading)
            print(reading.row, flush=True)
    print("\nAgainst xprof input_pipeline_analyzer on the same file:")
    for statement in statements(readings, BUDGET_MB):
        print(statement)


if __name__ == "__main__":
    main()
