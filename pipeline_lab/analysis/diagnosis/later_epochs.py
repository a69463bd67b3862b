"""A job by its later epochs alone, where its first one differs: it fills caches, and buffers start empty.

What is said of the job as a whole comes from them, since a longer job consists of little else. The analyses are the
same; they take the first epoch for warm-up, and of the windows only those recorded after it. A diagnosis keeps what the
job noted of them, so that what is suggested and predicted is about the same epochs as the verdict.
"""

from dataclasses import replace
from typing import TypeVar

import pyarrow as pa

from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.declaring.declaration import JobView, LaterView, attempt
from pipeline_lab.analysis.results import Diagnosis, LaterEpochs, Results, analyses
from pipeline_lab.analysis.steps.step_phases import APART, Phase, PhaseTimes, StepPhases
from pipeline_lab.errors import Unavailable

LEAST_STEPS = 10
"""Later steps below which the job is judged as a whole: a verdict on fewer is called less sure (``verdict_rules.FEW_STEPS``)."""
LEAST_FIRST_STEPS = 5
"""Steps of the first epoch below which the job is judged as a whole, of which they are a third at most.

A judgment, by this count: where one step in ten is slow by chance, the median of five steps is one of these for 1 job in
117 (three of five are slow), that of three for 1 in 36.
"""

AnyResults = TypeVar("AnyResults", bound=Results)


def find_apart(phases: StepPhases) -> tuple[PhaseTimes, PhaseTimes] | None:
    """Return the first epoch and the later ones if these are to be judged by themselves, else None."""
    times = {one.phase: one for one in phases.phases}
    first = times.get(Phase.FIRST_EPOCH) or times.get(Phase.BEFORE_CHANGE)
    later = times.get(Phase.LATER_EPOCHS) or times.get(Phase.AFTER_CHANGE)
    if first is None or later is None or first.steps < LEAST_FIRST_STEPS or later.steps < LEAST_STEPS:
        return None
    if abs(first.median_ns - later.median_ns) < APART * max(first.median_ns, later.median_ns):
        return None
    return first, later


def put_in(results: AnyResults, later: LaterEpochs) -> AnyResults:
    """Return results in which what the job noted of its later epochs stands for the whole job."""
    return replace(results, **later.results)


def judged(diagnosis: Diagnosis) -> Diagnosis:
    """Return what the job noted of the epochs that the verdict is about; what the traces say stays that of all windows."""
    return diagnosis if diagnosis.later_epochs is None else put_in(diagnosis, diagnosis.later_epochs)


def as_warmup(steps: pa.Table, first_step: int) -> pa.Table:
    """Return the steps of a run with all before the later epochs as warm-up; of schema ``runs.run_tables.STEPS``."""
    before = tables.ints(steps, "step") < first_step
    return tables.replace_column(steps, "warmup", (tables.bools(steps, "warmup") | before))


def measure_later(job: JobView, phases: StepPhases | Unavailable) -> LaterEpochs | None:
    """Measure the later epochs by themselves, or return None if the first one is like them.

    Args:
        job: What the job noted.
        phases: The job's epochs.
    """
    apart = None if isinstance(phases, Unavailable) else find_apart(phases)
    if apart is None:
        return None
    first, later = apart
    steps = as_warmup(job.tables.steps, later.first_step)
    begun = tables.ints(steps, "step") >= later.first_step
    view = LaterView(first, later, int(tables.ints(steps, "start_ns")[begun].min()) - job.origin_ns)
    behind = replace(job, tables=job.tables.with_steps(steps))
    found = {
        name: attempt(lambda per_job=one.per_job: per_job.later(per_job.measure(behind), view))  # type: ignore[misc]
        for name, one in analyses().items()
        if one.per_job is not None and one.per_job.later is not None
    }
    return LaterEpochs(first_step=later.first_step, start_ns=view.start_ns, first=first, **found)
