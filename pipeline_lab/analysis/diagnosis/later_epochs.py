"""A job by its later epochs alone, where its first one is another matter: it fills caches, and buffers start empty.

What is said of the job as a whole comes from them, since a longer job consists of little else. The analyses are the
same; they take the first epoch for warm-up, and of the windows only those that lie behind it. A diagnosis keeps what the
job noted of them, so that what is suggested and predicted is about the same epochs as the verdict.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from pipeline_lab.analysis import tables
from pipeline_lab.analysis.input.live_model import LiveModel
from pipeline_lab.analysis.results import Diagnosis, LaterEpochs, Results
from pipeline_lab.analysis.steps.calibration import Calibration
from pipeline_lab.analysis.steps.recorded_steps import Steps
from pipeline_lab.analysis.steps.step_phases import Phase, PhaseTimes, StepPhases
from pipeline_lab.analysis.verdict.losses import MODERATE_PERCENT
from pipeline_lab.errors import TraceIncompleteError, Unavailable

if TYPE_CHECKING:
    from pipeline_lab.analysis.diagnosis.fold import TraceParts  # loads the reader's compiled code

APART = 0.2
"""Share by which the median step of the later epochs differs from that of the first where they are judged apart.

A judgement, not measured: it is the share of a step from which on a loss names a run (``losses.STRONG_PERCENT``). The median
of all steps lies between the two, so below this share it is off by less than such a loss. What makes a first epoch another
matter, a cache that fills or files that come from the disk, mostly makes it several times as long.
"""

LEAST_STEPS = 10
"""Later steps below which the job is judged as a whole: a verdict on fewer is called less sure (``verdict_rules.FEW_STEPS``)."""
LEAST_FIRST_STEPS = 5
"""Steps of the first epoch below which the job is judged as a whole, of which they are a third at most.

A judgement, by this count: where one step in ten is slow by chance, the median of five steps is one of these for 1 job in
117 (three of five are slow), that of three for 1 in 36.
"""

ONLY_THE_FIRST = (
    "No profile window lies behind the first epoch, which is another matter than the later ones; record windows for longer, or "
    "more epochs."
)
NOT_SAMPLED = (
    "tf.data's own model of the pipeline was not sampled twice behind the first epoch, which is another matter than the later "
    "ones; record more epochs."
)

AnyResults = TypeVar("AnyResults", bound=Results)


def find_apart(phases: StepPhases) -> tuple[PhaseTimes, PhaseTimes] | None:
    """Return the first epoch and the later ones if these are to be judged by themselves, else None."""
    times = {one.phase: one for one in phases.phases}
    first, later = times.get(Phase.FIRST_EPOCH), times.get(Phase.LATER_EPOCHS)
    if first is None or later is None or first.steps < LEAST_FIRST_STEPS or later.steps < LEAST_STEPS:
        return None
    if abs(first.median_ns - later.median_ns) < APART * max(first.median_ns, later.median_ns):
        return None
    return first, later


def put_in(results: AnyResults, later: LaterEpochs) -> AnyResults:
    """Return results in which what the job noted of its later epochs stands for the whole job."""
    return replace(
        results,
        job_steps=later.job_steps,
        calibration=later.calibration,
        live_model=later.live_model,
        job_load=later.job_load,
        profiler_cost=later.profiler_cost,
    )


def judged(diagnosis: Diagnosis) -> Diagnosis:
    """Return what the job noted of the epochs that the verdict is about; what the traces say stays that of all windows."""
    return diagnosis if diagnosis.later_epochs is None else put_in(diagnosis, diagnosis.later_epochs)


def as_warmup(steps: pa.Table, first_step: int) -> pa.Table:
    """Return the steps of a run with all before the later epochs as warm-up; of schema ``runs.run_tables.STEPS``."""
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


def sampled_behind(model: LiveModel, start_ns: int) -> LiveModel:
    """Return the model if it is about what came after some moment; with too few samples there it is about the whole run.

    Raises:
        TraceIncompleteError: It is not.
    """
    if model.start_ns < start_ns:
        raise TraceIncompleteError(NOT_SAMPLED)
    return model


def windows_after(parts: Sequence["TraceParts"], start_ns: int) -> list["TraceParts"]:
    """Return the captures whose steps all lie after some moment; the first one's middle decides.

    Step numbers would not do: markers need not count as the job does, and a rhythm of waits has no numbers.
    """
    return [part for part in parts if not isinstance(part.steps, Unavailable) and _first_middle(part.steps) >= start_ns]


def _first_middle(steps: Steps) -> float:
    return float(tables.intervals(steps.table).mean(axis=1).min())
