"""What is read of captures that others recorded, against what is true of them.

    python -m benchmarks.trace.captures FOLDER

The folder holds one log directory per set. Exit code 1 where anything is read otherwise than expected.
"""

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from pipeline_lab.analysis.diagnosis.diagnose import diagnose
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.errors import PipelineLabError, Unavailable
from pipeline_lab.units import NS_PER_MS

Part = TypeVar("Part")


@dataclass(frozen=True)
class Fact:
    """One thing that is known of a set.

    Attributes:
        what: In words.
        expected: As a text.
        read: Tells the same of a diagnosis.
    """

    what: str
    expected: str
    read: Callable[[Diagnosis], str]


def steps_ms(found: Diagnosis) -> str:
    return " ".join(f"{length / NS_PER_MS:.3f}" for length in known(found.steps).length_ns)


def count(found: Diagnosis) -> str:
    return str(known(found.steps).count)


def mean_ms(found: Diagnosis) -> str:
    return f"{np.mean(known(found.steps).length_ns) / NS_PER_MS:.1f}"


def wait_ms(found: Diagnosis) -> str:
    return f"{known(found.input_stalls).wait_ns / NS_PER_MS:.3f}"


def event_sum_ms(found: Diagnosis) -> str:
    sum_ns = known(found.input_stalls).event_sum_ns
    return "unknown" if sum_ns is None else f"{sum_ns / NS_PER_MS:.3f}"


def wait_percent(found: Diagnosis) -> str:
    return f"{known(found.input_stalls).wait_percent:.2f}"


def mean_share(found: Diagnosis) -> str:
    """Return the mean of the steps' shares, which TensorFlow shows."""
    steps = known(found.steps)
    shares = 100.0 * np.array(steps.table.column("wait_ns").to_pylist()) / steps.length_ns
    return f"{shares.mean():.2f}"


def no_steps(found: Diagnosis) -> str:
    """Return how the reasons begin, which are one, why there are no steps and nothing of them."""
    parts = (found.steps, found.input_stalls, found.step_breakdown)
    reasons = {part.reason if isinstance(part, Unavailable) else "There are some" for part in parts}
    return " / ".join(sorted({reason[: len(NO_STEPS)] for reason in reasons}))


def devices(found: Diagnosis) -> str:
    return str(len(known(found.idle_gaps).devices))


def verdict(found: Diagnosis) -> str:
    return str(found.verdict.verdict_class.value)


def known(part: Part | Unavailable) -> Part:
    """Return a part that is there.

    Raises:
        PipelineLabError: It is not; says why.
    """
    if isinstance(part, Unavailable):
        raise PipelineLabError(part.reason)
    return part


REFUSED = "PyTorch's profiler (Kineto)"
NO_STEPS = "No steps in this trace"
FACTS: dict[str, tuple[Fact, ...]] = {
    "P1-gpu-multiworker-8gpu": (
        Fact("steps, ms", "19.865 21.310", steps_ms),
        Fact("input wait, sum of events, ms", "13.735", event_sum_ms),
        Fact("input wait, ms", "13.735", wait_ms),
    ),
    "P2-derived-only-demo": (
        Fact("steps", "9", count),
        Fact("input wait, % of all steps", "68.93", wait_percent),
        Fact("input wait, mean of shares, %", "43.38", mean_share),
    ),
    "P3-derived-gpu-input-bound": (
        Fact("steps", "11", count),
        Fact("mean step, ms", "1114.5", mean_ms),
        Fact("input wait, mean of shares, %", "81.37", mean_share),
    ),
    "P3-derived-gpu-compute-bound": (
        Fact("steps", "11", count),
        Fact("mean step, ms", "1805.1", mean_ms),
        Fact("input wait, %", "0.02", wait_percent),
    ),
    "P4-json-tfrecord-cache": (Fact("step, ms", "63.929", steps_ms), Fact("input wait, ms", "13.068", wait_ms)),
    "P5-tf22-cpu-run": (
        Fact("step, ms", "84.553", steps_ms),
        Fact("input wait, ms", "51.522", wait_ms),
        Fact("verdict", "input-bound", verdict),
    ),
    "P6-jax-rocm-8gpu-nosteps": (Fact("steps, waits, breakdown", NO_STEPS, no_steps), Fact("devices", "8", devices)),
    "P7-tpu-inference": (Fact("steps, waits, breakdown", NO_STEPS, no_steps), Fact("devices", "4", devices)),
    "P8-kineto-workers0": (Fact("refused as a trace of", REFUSED, verdict),),
    "P8-kineto-workers4": (Fact("refused as a trace of", REFUSED, verdict),),
}


def read_facts(path: Path, facts: tuple[Fact, ...]) -> list[str]:
    """Return what is read for each fact; where that fails, why."""
    try:
        found = diagnose(path)
    except PipelineLabError as error:
        return [str(error)] * len(facts)
    return [_read(fact, found) for fact in facts]


def _read(fact: Fact, found: Diagnosis) -> str:
    try:
        return fact.read(found)
    except PipelineLabError as error:
        return str(error)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    wrong = 0
    for name, facts in FACTS.items():
        for fact, text in zip(facts, read_facts(options.folder / name, facts), strict=True):
            is_right = fact.expected == text or (fact.expected == REFUSED and REFUSED in text)
            wrong += not is_right
            shown = fact.expected if is_right else f"{text}  <- WRONG"
            print(f"{name:<30} {fact.what:<30} {fact.expected:<28} {shown}")
    print(f"{sum(map(len, FACTS.values()))} facts, {wrong} read otherwise")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
