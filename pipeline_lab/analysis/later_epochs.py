"""A job by its later epochs alone, where its first one is another matter: it fills caches, and buffers start empty.

What is said of the job as a whole comes from them, since a longer job consists of little else. The analyses are the
same; they take the first epoch for warm-up, and of the windows only those that lie behind it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from pipeline_lab.analysis import tables
from pipeline_lab.analysis.calibration import Calibration
from pipeline_lab.analysis.job_load import JobLoad
from pipeline_lab.analysis.job_steps import JobSteps
from pipeline_lab.analysis.live_model import LiveModel
from pipeline_lab.analysis.losses import MODERATE_PERCENT
from pipeline_lab.analysis.profiler_cost import ProfilerCost
from pipeline_lab.analysis.step_phases import Phase, PhaseTimes, StepPhases
from pipeline_lab.analysis.steps import Steps
from pipeline_lab.errors import Unavailable

if TYPE_CHECKING:
    from pipeline_lab.analysis.trace_parts import TraceParts  # loads the reader's compiled code

APART = 0.2
"""Share by which the median step of the later epochs differs from that of the first where they are judged apart."""

LEAST_STEPS = 10
"""Fewer steps say too little of a job."""
LEAST_FIRST_STEPS = 5
"""Fewer steps differ from others by chance."""

ONLY_THE_FIRST = (
    "No profile window lies behind the first epoch, which is another matter than the later ones; record windows for longer, or "
    "more epochs."
)


@dataclass(frozen=True, eq=False)
class LaterEpochs:
    """What the job noted of its later epochs.

    Attributes:
        start_ns: When their first step began, on the diagnosis' axis.
        first: The first epoch.
        job_steps, calibration, live_model, job_load, profiler_cost: As for the whole job.
    """

    start_ns: int
    first: PhaseTimes
    job_steps: JobSteps | Unavailable
    calibration: Calibration | Unavailable
    live_model: LiveModel | Unavailable
    job_load: JobLoad | Unavailable
    profiler_cost: ProfilerCost | Unavailable


def judged_as_a_whole(phases: StepPhases | Unavailable) -> bool:
    """Say whether a job's verdict is about all of it, not about its later epochs alone."""
    return isinstance(phases, Unavailable) or find_apart(phases) is None


def find_apart(phases: StepPhases) -> tuple[PhaseTimes, PhaseTimes] | None:
    """Return the first epoch and the later ones if these are to be judged by themselves, else None."""
    times = {one.phase: one for one in phases.phases}
    first, later = times.get(Phase.FIRST_EPOCH), times.get(Phase.LATER_EPOCHS)
    if first is None or later is None or first.steps < LEAST_FIRST_STEPS or later.steps < LEAST_STEPS:
        return None
    if abs(first.median_ns - later.median_ns) < APART * max(first.median_ns, later.median_ns):
        return None
    return first, later


def as_warmup(steps: pa.Table, first_step: int) -> pa.Table:
    """Return the steps of a run with all before the later epochs as warm-up; of schema ``runs.tables.STEPS``."""
    before = tables.ints(steps, "step") < first_step
    return tables.replace_column(steps, "warmup", (tables.bools(steps, "warmup") | before))


def without_first_pace(calibration: Calibration, first: PhaseTimes, later: PhaseTimes) -> Calibration:
    """Take out the pipeline alone where it has changed since: it was timed from its beginning, as the first epoch runs.

    It has where the job waits for another share of its steps than it did, or steps are faster than the pipeline was.
    """
    alone_ns = calibration.pipeline_only_ns
    waits_alike = abs(first.wait_percent - later.wait_percent) < MODERATE_PERCENT
    if alone_ns is None or (waits_alike and alone_ns <= calibration.step_ns):
        return calibration
    return replace(calibration, pipeline_only_ns=None, pipeline_only_cpu_ns=None)


def windows_after(parts: Sequence["TraceParts"], start_ns: int) -> list["TraceParts"]:
    """Return the captures whose steps all lie after some moment; the first one's middle decides.

    Step numbers would not do: markers need not count as the job does, and a rhythm of waits has no numbers.
    """
    return [part for part in parts if not isinstance(part.steps, Unavailable) and _first_middle(part.steps) >= start_ns]


def _first_middle(steps: Steps) -> float:
    return float(tables.intervals(steps.table).mean(axis=1).min())
