"""Examples that Python makes on the fly, and ``from_generator`` hands to tf.data.

Several generators stand in the place of files, so that reading modes visit them in the same ways. Each example's id
is the generator's number × 2⁴⁰ + its own.
"""

from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal

from pydantic import Field

from pipeline_lab.fields import FileSizes
from pipeline_lab.stages.batches import BatchStage
from pipeline_lab.stages.code import Code, assign_call, wanted
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.read import PerFile, ReadStage, read_lines
from pipeline_lab.stages.stage_values import Position, Remark, Weight
from pipeline_lab.units import NS_PER_MS, format_bytes
from pipeline_lab.workloads.workload import Workload, WorkloadSource

HAND_OVER_MS = 0.2
HAND_OVER_MS_PER_MB = 7.0
"""What it takes to get an example out of a process, on top of its making: 1.5 ms for an image of 256×256 (measured)."""


class GeneratorWorkload(Workload):
    """Train on examples that Python makes on the fly (`from_generator`); nothing is read from files."""

    kind: Literal["generator"] = "generator"
    examples_per_generator: FileSizes = (8000,)
    """Examples of each generator; the read stage visits generators as it would visit files."""
    examples_at_once: int = Field(1, ge=1, le=100_000)
    """Examples that a generator yields at a time; more than one is a batch made in Python, rebatched by `batch`."""
    example_ms: float = Field(0.1, ge=0, le=60_000)
    """Python's work on each example, ms; only one thread of a process at a time can do it."""
    producer: Literal["in_line", "threads", "processes"] = "in_line"
    """Who makes the examples: the generator itself, threads, or processes, which hand them over through a queue."""
    workers: int = Field(2, ge=1, le=256)
    """Threads or processes of each generator."""
    ids: Literal["numbers", "strings"] = "numbers"
    """strings: every example also carries a name that says nothing, as records of a database do; it comes back with the
    example in the run's `names.arrows`."""
    element_bytes: int = Field(1024, ge=8, le=100_000_000)
    """Payload of one example, bytes."""
    compute_ms: float = Field(10.0, ge=0, le=600_000)
    """Time of the training step on one batch, ms."""

    matters: ClassVar = ("examples_per_generator", "example_ms", "producer", "workers", "compute_ms")
    has_files: ClassVar = False
    shown_with: ClassVar = {"workers": ("producer", ("threads", "processes"))}

    made_by_python: ClassVar = True
    computes: ClassVar = False

    def source(self, pipeline: PipelineOptions, *, has_probe: bool) -> WorkloadSource:
        is_several = len(self.examples_per_generator) > 1
        single = assign_call("tf.data.Dataset.from_generator", ["generate", "output_signature=SIGNATURE"])
        fields = '"payload": uint8, "id": int64' + (', "name": string' if self.ids == "strings" else "")
        return WorkloadSource(
            about=(f"Elements are batches of {{{fields}}}, made by Python; no file is read.",),
            code=_code(self, is_several=is_several),
            written={
                "read": lambda read: read_lines(read, PerFile.GENERATED) if is_several else (single,),
                # what comes are batches already, made in Python
                **({"batch": _rebatch} if self.examples_at_once > 1 else {}),
            },
            over="over generators, not files",
        )

    def check(self, pipeline: PipelineOptions) -> None:
        read = pipeline.first(ReadStage)
        if read is not None and read.mode == "sample":
            raise ValueError("mode = sample weighs files by their size, which generators do not have; use interleave")
        if read is not None and read.mode == "map":
            raise ValueError("mode = map makes datasets of files, which generators do not have; use flat_map")
        if self.ids == "strings" and pipeline.find("prefetch_to_device"):
            raise ValueError("strings cannot be copied to a device; use prefetch, or ids = numbers")
        if self.examples_at_once == 1:
            return
        if pipeline.find("unbatch"):
            raise ValueError("unbatch does not go with generators that yield several examples at once; remove it")
        for stage in pipeline.stages:
            if stage.stage == "batch":
                return
            if stage.is_part:
                raise ValueError(
                    f"{stage.stage} before batch would count what a generator yields at once, {self.examples_at_once} "
                    "examples; put it after batch"
                )

    @property
    def has_names(self) -> bool:
        return self.ids == "strings"

    @property
    def known_fields(self) -> frozenset[str]:
        if self.producer != "in_line":  # how long the examples take is not how long one waits for them
            return frozenset({"compute_ms", "examples_per_generator"})
        return frozenset({"example_ms", "examples_at_once", "compute_ms", "examples_per_generator"})

    @property
    def step_ns(self) -> float:
        return self.compute_ms * NS_PER_MS

    def set_ns(self, stage: str) -> float:
        return self.example_ms * NS_PER_MS if stage == "read" and self.producer == "in_line" else 0.0

    def examples_per_call(self, stage: str) -> int:
        return self.examples_at_once if stage == "read" else 1

    @property
    def file_sizes(self) -> tuple[int, ...]:
        return self.examples_per_generator

    @property
    def record_bytes(self) -> int:
        return self.element_bytes

    def remarks(self, places: Sequence[Position]) -> Iterator[Remark]:
        """Say who had better make the examples: Python in line, its threads, or processes."""
        hand_over_ms = HAND_OVER_MS + HAND_OVER_MS_PER_MB * self.element_bytes / 1e6
        if self.producer == "threads" and self.example_ms > 0:
            yield places[0].remark(
                "python-threads",
                Weight.ADVICE,
                f"{self.workers} Python threads make no more examples than one, for only one at a time can work; processes "
                "can all work at once.",
            )
        elif self.producer == "processes" and self.example_ms < hand_over_ms:
            yield places[0].remark(
                "process-queue",
                Weight.ADVICE,
                f"To hand over an example of {format_bytes(self.element_bytes)} takes a process about {hand_over_ms:.2g} ms, "
                f"longer than the {self.example_ms:g} ms of making it; make the examples in line.",
            )


AHEAD = 2
"""Examples that each worker may be ahead: one in the making, one that waits."""

_MAKE = '''
def make_example(number: int) -> np.ndarray:
    """Take EXAMPLE_SECONDS to make one example in Python; no other Python thread runs meanwhile."""
    due = time.perf_counter() + EXAMPLE_SECONDS
    while time.perf_counter() < due:
        pass
    return np.full(ELEMENT_BYTES, number % 256, np.uint8)
'''

_MAKE_QUICKLY = '''
def make_example(number: int) -> np.ndarray:
    """Make one example."""
    return np.full(ELEMENT_BYTES, number % 256, np.uint8)
'''

_ONE = '''
def make(generator: int, number: int) -> dict[str, Any]:
    """Make one example with its id."""
    return {"payload": make_example(number), "id": generator * 2**40 + number}
'''

_ONE_NAMED = '''
def make(generator: int, number: int) -> dict[str, Any]:
    """Make one example with its id and its name."""
    name = make_name(generator, number)
    return {"payload": make_example(number), "id": generator * 2**40 + number, "name": name}
'''

_BATCHES = '''
def make(generator: int, first: int) -> dict[str, Any]:
    """Make EXAMPLES_AT_ONCE examples with their ids; the last ones may be fewer."""
    numbers = range(first, min(first + EXAMPLES_AT_ONCE, EXAMPLES[generator]))
    payloads = np.stack([make_example(number) for number in numbers])
    return {"payload": payloads, "id": generator * 2**40 + np.array(numbers, np.int64)}
'''

_BATCHES_NAMED = '''
def make(generator: int, first: int) -> dict[str, Any]:
    """Make EXAMPLES_AT_ONCE examples with their ids and names; the last ones may be fewer."""
    numbers = range(first, min(first + EXAMPLES_AT_ONCE, EXAMPLES[generator]))
    payloads = np.stack([make_example(number) for number in numbers])
    names = np.array([make_name(generator, number) for number in numbers])
    return {"payload": payloads, "id": generator * 2**40 + np.array(numbers, np.int64), "name": names}
'''

_NAME = '''
def make_name(generator: int, number: int) -> str:
    """Return a name that says nothing about its example."""
    return hashlib.sha256(f"{generator}/{number}".encode()).hexdigest()[:16]
'''

_IN_LINE = '''
def generate(generator: int = 0) -> Iterator[dict[str, Any]]:
    """Make one after the other."""
    for number in range(0, EXAMPLES[generator], STEP):
        yield make(generator, number)
'''

_THREADS = '''
def generate(generator: int = 0) -> Iterator[dict[str, Any]]:
    """Let WORKERS threads make them, AHEAD of what is asked for, and yield them in order."""
    numbers = iter(range(0, EXAMPLES[generator], STEP))
    with ThreadPoolExecutor(WORKERS) as pool:
        made = deque(pool.submit(make, generator, number) for number in itertools.islice(numbers, AHEAD))
        while made:
            yield made.popleft().result()
            made.extend(pool.submit(make, generator, number) for number in itertools.islice(numbers, 1))
'''

_PROCESSES = '''
def prepare_process() -> None:
    """End a process of the pool on SIGTERM, and when its parent is killed."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def watch(parent: int) -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, args=(os.getppid(),), daemon=True).start()


def generate(generator: int = 0) -> Iterator[dict[str, Any]]:
    """Let WORKERS processes make them, AHEAD of what is asked for; they come back through a queue, in order."""
    numbers = iter(range(0, EXAMPLES[generator], STEP))
    fork = multiprocessing.get_context("fork")  # a new interpreter would import this module, and TensorFlow with it
    with ProcessPoolExecutor(WORKERS, fork, prepare_process) as pool:
        made = deque(pool.submit(make, generator, number) for number in itertools.islice(numbers, AHEAD))
        while made:
            yield made.popleft().result()
            made.extend(pool.submit(make, generator, number) for number in itertools.islice(numbers, 1))
'''

_OPEN = '''
def open_generator(generator: tf.Tensor) -> tf.data.Dataset:
    """Start one of the generators."""
    return tf.data.Dataset.from_generator(generate, args=(generator,), output_signature=SIGNATURE)
'''


def _rebatch(stage: BatchStage) -> Sequence[str]:
    arguments = [str(stage.size), *(["drop_remainder=True"] if stage.drop_remainder else [])]
    return [assign_call("dataset.rebatch", arguments)]


def _code(workload: GeneratorWorkload, *, is_several: bool) -> Code:
    takes_time, at_once, is_named = workload.example_ms > 0, workload.examples_at_once > 1, workload.ids == "strings"
    has_workers, has_processes = workload.producer != "in_line", workload.producer == "processes"
    sizes = ", ".join(str(size) for size in workload.examples_per_generator)
    constants = {
        f"EXAMPLES = [{sizes}]": True,
        f"EXAMPLES_AT_ONCE = {workload.examples_at_once}": at_once,
        f"EXAMPLE_SECONDS = {workload.example_ms / 1e3!r}": takes_time,
        f"ELEMENT_BYTES = {workload.element_bytes}": True,
        f"WORKERS = {workload.workers}": has_workers,
        f"AHEAD = {AHEAD} * WORKERS": has_workers,
        _signature(at_once=at_once, is_named=is_named): True,
    }
    make_several = _BATCHES_NAMED if is_named else _BATCHES
    generate = {"in_line": _IN_LINE, "threads": _THREADS, "processes": _PROCESSES}[workload.producer]
    step = ", EXAMPLES_AT_ONCE" if at_once else ""
    functions = {
        _MAKE if takes_time else _MAKE_QUICKLY: True,
        _NAME: is_named,
        make_several if at_once else _ONE_NAMED if is_named else _ONE: True,
        generate.replace(", STEP", step): True,
        _OPEN: is_several,
    }
    imports = {
        "import hashlib": is_named,
        "import itertools": has_workers,
        "import multiprocessing": has_processes,
        "import os": has_processes,
        "import signal": has_processes,
        "import threading": has_processes,
        "import time": takes_time or has_processes,
        "from collections import deque": has_workers,
        "from collections.abc import Iterator": True,
        "from concurrent.futures import ProcessPoolExecutor": has_processes,
        "from concurrent.futures import ThreadPoolExecutor": workload.producer == "threads",
        "from typing import Any": True,
        "import numpy as np": True,
    }
    return Code(wanted(imports), wanted(constants), tuple(text.strip() for text in wanted(functions)))


def _signature(*, at_once: bool, is_named: bool) -> str:
    many = "None" if at_once else ""
    payload = "None, ELEMENT_BYTES" if at_once else "ELEMENT_BYTES"
    name = [f'    "name": tf.TensorSpec([{many}], tf.string),'] if is_named else []
    specs = [f'    "payload": tf.TensorSpec([{payload}], tf.uint8),', f'    "id": tf.TensorSpec([{many}], tf.int64),']
    return "\n".join(["SIGNATURE = {", *specs, *name, "}"])
