"""Throw damaged files at the whole reading: nothing may crash, hang, or take more memory than its file allows.

    python -m benchmarks.trace.fuzz --inputs 200000 [--captures FOLDER]

Every input goes from the path to the written diagnosis, and ends in a diagnosis or in one sentence. Seeds count up from
``--first``, so that a failure is found again by its seed. A failing input is written to ``--keep``.
"""

import argparse
import json
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from types import FrameType

from benchmarks.trace.fuzz_inputs import UNPACKED_BYTES, Seed, hostile_archive, sound_files
from pipeline_lab.analysis.diagnosis import diagnose
from pipeline_lab.errors import PipelineLabError
from pipeline_lab.trace.sources import find_traces
from tests.trace.checks import assert_consistent

HANG_S = 20
ALLOWED_BYTES = 64_000_000 + 4 * UNPACKED_BYTES
REPORT_EVERY = 1_000
HOSTILE_SHARE = 0.1


class HangError(Exception):
    """An input took too long."""


def read_all(path: Path) -> None:
    """Read everything that a path holds, down to the document that is printed."""
    with find_traces(path) as source:
        for file in source.files:
            try:
                trace = file.read()
            except PipelineLabError as error:
                assert_sentence(error)
            else:
                assert_consistent(trace)
    diagnosis = diagnose(path)
    json.dumps(diagnosis.to_json(), allow_nan=False)
    diagnosis._repr_html_()


def assert_sentence(error: PipelineLabError) -> None:
    text = str(error)
    assert text.endswith("."), f"no sentence: {text}"
    assert "\n" not in text, f"more than a line: {text}"


def check(name: str, data: bytes, folder: Path) -> str:
    """Read one input; return what is wrong with how it went, or nothing."""
    path = folder / name
    path.write_bytes(data)
    signal.setitimer(signal.ITIMER_VIRTUAL, HANG_S)  # processor time: a busy machine is no hang
    try:
        read_all(path)
    except PipelineLabError as error:
        try:
            assert_sentence(error)
        except AssertionError as problem:
            return str(problem)
    except Exception as error:
        return f"{type(error).__name__}: {error}\n{traceback.format_exc()}"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return ""


def give_up(_number: int, _frame: FrameType | None) -> None:
    raise HangError(f"more than {HANG_S} s of processor time")


def next_input(seeds: list[Seed], number: int) -> tuple[str, bytes]:
    chance = random.Random(number)
    if chance.random() < HOSTILE_SHARE:
        return hostile_archive(number)
    seed = chance.choice(seeds)
    return seed.name, seed.damaged(number)


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=200_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=Path("fuzz_failures"))
    parser.add_argument("--captures", type=Path, help="a folder with more captures to begin with")
    options = parser.parse_args()
    signal.signal(signal.SIGVTALRM, give_up)
    seeds = list(sound_files(options.captures))
    failures = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for seed in seeds:
            problem = check(seed.name, seed.data, folder)
            print(f"{seed.name:<44} {len(seed.data):>9,} bytes {problem or 'read'}")
        base, begin = peak_bytes(), time.process_time()
        for number in range(options.first, options.first + options.inputs):
            file, data = next_input(seeds, number)
            problem = check(file, data, folder)
            if problem:
                failures += 1
                options.keep.mkdir(exist_ok=True)
                shutil.copy(folder / file, options.keep / f"{number}.{file}")
                print(f"input {number} ({file}): {problem}", file=sys.stderr, flush=True)
            (folder / file).unlink()
            if (number + 1 - options.first) % REPORT_EVERY == 0:
                took = f"{time.process_time() - begin:.0f} s of processor time"
                grown = f"memory +{(peak_bytes() - base) / 1e6:.0f} MB"
                print(f"{number + 1 - options.first:,} inputs, {failures} failures, {grown}, {took}", flush=True)
    grown_bytes = peak_bytes() - base
    print(f"{options.inputs:,} inputs, {failures} failures, memory +{grown_bytes / 1e6:.0f} MB")
    return 1 if failures or grown_bytes > ALLOWED_BYTES else 0


if __name__ == "__main__":
    sys.exit(main())
