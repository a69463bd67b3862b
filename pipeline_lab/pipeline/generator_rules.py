"""Rules about who makes the examples of generators: Python in line, its threads, or processes."""

from collections.abc import Callable, Iterator

from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.pipeline.finding import Finding, Weight
from pipeline_lab.units import format_bytes
from pipeline_lab.workloads.generator import GeneratorWorkload

HAND_OVER_MS = 0.2
HAND_OVER_MS_PER_MB = 7.0
"""What it takes to get an example out of a process, on top of its making: 1.5 ms for an image of 256×256 (measured)."""


def _producer(options: RunOptions) -> Iterator[Finding]:
    workload = options.workload
    if not isinstance(workload, GeneratorWorkload):
        return
    hand_over_ms = HAND_OVER_MS + HAND_OVER_MS_PER_MB * workload.element_bytes / 1e6
    if workload.producer == "threads" and workload.example_ms > 0:
        yield Finding(
            "python-threads",
            Weight.ADVICE,
            0,
            f"{workload.workers} Python threads make no more examples than one, for only one at a time can work; "
            "processes can all work at once.",
        )
    elif workload.producer == "processes" and workload.example_ms < hand_over_ms:
        yield Finding(
            "process-queue",
            Weight.ADVICE,
            0,
            f"To hand over an example of {format_bytes(workload.element_bytes)} takes a process about {hand_over_ms:.2g} ms, "
            f"longer than the {workload.example_ms:g} ms of making it; make the examples in line.",
        )


GENERATOR_RULES: tuple[Callable[[RunOptions], Iterator[Finding]], ...] = (_producer,)
