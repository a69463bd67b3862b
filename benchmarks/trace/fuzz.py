"""Throw damaged files at the whole reading: nothing may crash, hang, take more memory than its file allows, or say what can't be.

    python -m benchmarks.trace.fuzz --inputs 200000 [--captures FOLDER]
    python -m benchmarks.trace.fuzz --inputs 20000 --guided

Every input goes from the path to the written diagnosis, and ends in a diagnosis or in one sentence. No share in a diagnosis lies
outside 0 to 100 %, and no length is negative. With ``--guided``, an input that leads to lines in an order that none before led
to is damaged further; compiled loops are not looked into. Seeds count up from
``--first``, so that a failure is found again by its seed. A failing input is written to ``--keep``.
"""

import argparse
import json
import random
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from benchmarks.impossible import find_impossible
from benchmarks.trace.archives import hostile_archive
from benchmarks.trace.fuzz_inputs import UNPACKED_BYTES, Seed, sound_files
from pipeline_lab.analysis.diagnosis.diagnose import diagnose
from pipeline_lab.errors import PipelineLabError
from pipeline_lab.trace.sources import find_traces
from pipeline_lab.trace.xplane import xspace
from tests.trace.checks import assert_consistent

HANG_S = 20
FIXED_BYTES = 64_000_000
REPORT_EVERY = 1_000
CLOSELY_EVERY = 10
HOSTILE_SHARE = 0.05
WATCHED = "pipeline_lab/trace/"
LARGEST_KEPT = 300_000
"""Bytes of an input from which one goes on: what is longer takes long to read."""
WAYS = ((xspace.SAMPLED, xspace.PIECE), (8, 32))
"""Events of a line that are looked at first, and in a piece: as always, and so that short lines are read as long ones are."""


class HangError(Exception):
    """An input took too long."""


def read_all(path: Path, *, closely: bool) -> None:
    """Read everything that a path holds, down to the document that is printed; closely, also its columns and page."""
    diagnosis = diagnose(path)
    document = diagnosis.to_json()
    json.dumps(document, allow_nan=False)
    impossible = list(find_impossible(document))
    assert not impossible, f"impossible: {', '.join(impossible)}"
    if not closely:
        return
    diagnosis._repr_html_()
    with find_traces(path) as source:
        for file in source.files:
            try:
                trace = file.read()
            except PipelineLabError as error:
                assert_sentence(error)
            else:
                assert_consistent(trace)


def assert_sentence(error: PipelineLabError) -> None:
    text = str(error)
    assert text.endswith("."), f"no sentence: {text}"
    assert "\n" not in text, f"more than a line: {text}"


@dataclass(frozen=True)
class Input:
    """One file to read.

    Attributes:
        name, data: The file.
        unpacked_bytes: What it may unpack to, at most.
        closely: See `read_all`.
    """

    name: str
    data: bytes
    unpacked_bytes: int
    closely: bool = True

    @property
    def allowed_bytes(self) -> int:
        """Memory that reading it may take."""
        return FIXED_BYTES + 4 * max(self.unpacked_bytes, len(self.data))


def check(one: Input, folder: Path) -> tuple[str, int]:
    """Read one input; return what is wrong with how it went, or nothing, and the memory that it took in bytes."""
    path = folder / one.name
    path.write_bytes(one.data)
    before_bytes = forget_peak()
    signal.setitimer(signal.ITIMER_VIRTUAL, HANG_S)  # processor time: a busy machine is no hang
    try:
        read_all(path, closely=one.closely)
    except PipelineLabError as error:
        try:
            assert_sentence(error)
        except AssertionError as problem:
            return str(problem), 0
    except Exception as error:
        return f"{type(error).__name__}: {error}\n{traceback.format_exc()}", 0
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    taken_bytes = status_bytes("VmHWM") - before_bytes
    if taken_bytes > one.allowed_bytes:
        return f"{taken_bytes / 1e6:.0f} MB of memory where {one.allowed_bytes / 1e6:.0f} are allowed", taken_bytes
    return "", taken_bytes


def forget_peak() -> int:
    """Begin to watch the process's memory anew; return what it holds, in bytes."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return status_bytes("VmRSS")


def status_bytes(name: str) -> int:
    """Return a figure that Linux keeps of this process."""
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
    assert found, f"Linux tells no {name}"
    return int(found[1]) * 1024


def give_up(_number: int, _frame: FrameType | None) -> None:
    raise HangError(f"more than {HANG_S} s of processor time")


@dataclass
class Paths:
    """Which lines of the readers followed which, over all inputs so far."""

    known: set[tuple[int, int, int]] = field(default_factory=set)
    _before: int = 0
    _found: bool = False

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch what happens inside."""
        self._found = False
        sys.settrace(self._enter)
        try:
            yield
        finally:
            sys.settrace(None)

    @property
    def are_new(self) -> bool:
        """Whether the last input went along a new one."""
        return self._found

    def _enter(self, frame: FrameType, _event: str, _argument: object) -> "Callable[..., object] | None":
        return self._step if WATCHED in frame.f_code.co_filename else None

    def _step(self, frame: FrameType, event: str, _argument: object) -> "Callable[..., object]":
        if event == "line":
            edge = (hash(frame.f_code), self._before, frame.f_lineno)
            self._before = frame.f_lineno
            if edge not in self.known:
                self.known.add(edge)
                self._found = True
        return self._step


def next_input(seeds: list[Seed], number: int) -> Input:
    chance = random.Random(number)
    closely = number % CLOSELY_EVERY == 0
    if chance.random() < HOSTILE_SHARE:
        return Input(*hostile_archive(number), UNPACKED_BYTES, closely)
    (seed,) = chance.choices(seeds, [seed.weight for seed in seeds])
    return Input(seed.name, seed.damaged(number), seed.unpacked_bytes, closely)


@dataclass
class Tally:
    """What a round of inputs came to."""

    inputs: int = 0
    failures: int = 0
    most_bytes: int = 0
    kept: int = 0
    begin_s: float = field(default_factory=time.process_time)

    def add(self, problem: str, taken_bytes: int) -> None:
        self.inputs += 1
        self.failures += bool(problem)
        self.most_bytes = max(self.most_bytes, taken_bytes)

    def __str__(self) -> str:
        most = f"at most {self.most_bytes / 1e6:.0f} MB of memory for one"
        kept = f", {self.kept:,} led somewhere new" if self.kept else ""
        return f"{self.inputs:,} inputs, {self.failures} failures{kept}, {most}, {time.process_time():.0f} s of processor time"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=200_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=Path("fuzz_failures"))
    parser.add_argument("--guided", action="store_true", help="go on from inputs that led somewhere new")
    parser.add_argument("--captures", type=Path, help="a folder with more captures to begin with")
    options = parser.parse_args()
    signal.signal(signal.SIGVTALRM, give_up)
    seeds = list(sound_files(options.captures))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for seed in (seeds[0], *seeds):  # the first reading of all loads the reader
            problem, _ = check(Input(seed.name, seed.data, seed.unpacked_bytes), folder)
            print(f"{seed.name:<44} {len(seed.data):>9,} bytes {problem or 'read'}")
            (folder / seed.name).unlink()
        numbers = range(options.first, options.first + options.inputs)
        tally = fuzz(seeds, numbers, folder, options.keep, Paths() if options.guided else None)
    print(tally)
    return 1 if tally.failures else 0


def fuzz(seeds: list[Seed], numbers: range, folder: Path, keep: Path, paths: Paths | None = None) -> Tally:
    tally = Tally()
    for number in numbers:
        xspace.SAMPLED, xspace.PIECE = WAYS[number % len(WAYS)]
        one = next_input(seeds, number)
        with nullcontext() if paths is None else paths.watching():
            problem, taken_bytes = check(one, folder)
        tally.add(problem, taken_bytes)
        if paths is not None and paths.are_new and 1 < len(one.data) <= LARGEST_KEPT:
            seeds.append(Seed(one.name, one.data))
            tally.kept += 1
        if problem:
            keep.mkdir(exist_ok=True)
            shutil.copy(folder / one.name, keep / f"{number}.{one.name}")
            print(f"input {number} ({one.name}): {problem}", file=sys.stderr, flush=True)
        (folder / one.name).unlink()
        if tally.inputs % REPORT_EVERY == 0:
            print(tally, flush=True)
    return tally


if __name__ == "__main__":
    sys.exit(main())
