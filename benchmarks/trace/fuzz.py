"""Throw damaged files at every reader: nothing may crash, hang, or take more memory than its file allows.

    python -m benchmarks.trace.fuzz --inputs 200000

Seeds count up from ``--first``, so that a failure is found again by its seed. A failing input is written to ``--keep``.
"""

import argparse
import gzip
import io
import json
import random
import resource
import shutil
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pipeline_lab.errors import TraceIncompleteError, TraceReadError
from pipeline_lab.trace.derived import read_derived
from pipeline_lab.trace.sources import open_traces
from tests.support.xspace import XSpace, chunk, number
from tests.trace.checks import assert_consistent
from tests.trace.mutations import mutate

DATA = Path(__file__).parents[2] / "tests" / "data"
SLOW_S = 5.0
"""Processor time that one input may take; the largest is a few tens of kilobytes."""
SPARE_BYTES = 64_000_000
REPORT_EVERY = 10_000


@dataclass(frozen=True)
class Seed:
    """A sound file, and what reads it."""

    name: str
    data: bytes
    read: Callable[[Path], None]


def read_all(path: Path) -> None:
    for trace in open_traces(path):
        assert_consistent(trace)


def sound_files() -> Iterator[Seed]:
    recorded = (DATA / "small_pipeline.xplane.pb").read_bytes()
    yield Seed("recorded.xplane.pb", recorded, read_all)
    yield Seed("small.xplane.pb", small_space(), read_all)
    yield Seed("small.xplane.pb.gz", gzip.compress(small_space()), read_all)
    yield Seed("small.trace.json", chrome_trace(), read_all)
    yield Seed("small.trace.json.gz", gzip.compress(chrome_trace()), read_all)
    yield Seed("log.zip", zip_file(), read_all)
    yield Seed("log.tar", tar_file("w"), read_all)
    yield Seed("log.tar.gz", tar_file("w:gz"), read_all)
    yield Seed("local.trace", legacy_trace(), read_all)
    yield Seed("h.input_pipeline.pb", derived_file(), lambda path: read_derived(path) and None)


def small_space() -> bytes:
    space = XSpace()
    for plane_name, line_name in (("/host:CPU", "python"), ("/device:GPU:0", "Stream #1")):
        plane = space.plane(plane_name).set("clock_rate", 5)
        for k in range(3):
            line = plane.line(f"{line_name}{k}", timestamp_ns=k)
            for n in range(12):
                line.event(f"Op::{n % 4}", n, 1, id=n, label="x", share=0.5)
    return space.environment(1_700_000_000 * 10**9, 1_700_000_001 * 10**9).encode()


def chrome_trace() -> bytes:
    names = [{"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/host:CPU"}}]
    events = [
        {"ph": "X", "pid": 1, "tid": n % 3, "ts": n, "dur": 1.5, "name": f"e{n % 4}", "args": {"id": str(n)}}
        for n in range(40)
    ]
    return json.dumps({"displayTimeUnit": "ns", "traceEvents": [*names, *events, {}]}).encode()


def zip_file() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("log/plugins/profile/w/h.xplane.pb", small_space())
        archive.writestr("log/plugins/profile/w/i.trace.json", chrome_trace())
    return out.getvalue()


def tar_file(mode: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:
        info = tarfile.TarInfo("log/plugins/profile/w/h.xplane.pb")
        info.size = len(small_space())
        archive.addfile(info, io.BytesIO(small_space()))
    return out.getvalue()


def legacy_trace() -> bytes:
    resources = chunk(3, number(1, 7) + chunk(2, chunk(1, b"python") + number(2, 7)))
    device = chunk(1, number(1, 3) + chunk(2, chunk(1, b"/host:CPU") + number(2, 3) + resources))
    events = (
        number(1, 3) + number(2, 7) + chunk(3, b"IteratorGetNextSync") + number(9, n * 10**6) + number(10, 10**6)
        for n in range(40)
    )
    return device + b"".join(chunk(4, event) for event in events)


def derived_file() -> bytes:
    return chunk(1, number(1, 3)) + chunk(4, chunk(1, b"type.googleapis.com/x") + chunk(2, number(1, 4))) + number(6, 1)


def check(seed: Seed, data: bytes, folder: Path) -> str:
    """Read one input; return what is wrong with how it went, or nothing."""
    path = folder / seed.name
    path.write_bytes(data)
    begin = time.process_time()  # a busy machine is no hang
    try:
        seed.read(path)
    except (TraceReadError, TraceIncompleteError) as error:
        if not str(error).endswith("."):
            return f"no sentence: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    took_s = time.process_time() - begin
    return f"took {took_s:.1f} s" if took_s > SLOW_S else ""


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=200_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=Path("fuzz_failures"))
    options = parser.parse_args()
    seeds = list(sound_files())
    failures = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for seed in seeds:
            problem = check(seed, seed.data, folder)
            print(f"{seed.name:<24} {len(seed.data):>7,} bytes {problem or 'read'}")
        base = peak_bytes()
        for k in range(options.first, options.first + options.inputs):
            seed = seeds[random.Random(k).randrange(len(seeds))]
            data = mutate(seed.data, k)
            problem = check(seed, data, folder)
            if problem:
                failures += 1
                options.keep.mkdir(exist_ok=True)
                shutil.copy(folder / seed.name, options.keep / f"{k}.{seed.name}")
                print(f"input {k} ({seed.name}): {problem}", file=sys.stderr)
            if (k + 1) % REPORT_EVERY == 0:
                print(
                    f"{k + 1:,} inputs, {failures} failures, memory +{(peak_bytes() - base) / 1e6:.0f} MB", flush=True
                )
    grown = peak_bytes() - base
    print(f"{options.inputs:,} inputs, {failures} failures, memory +{grown / 1e6:.0f} MB")
    return 1 if failures or grown > SPARE_BYTES else 0


if __name__ == "__main__":
    sys.exit(main())
