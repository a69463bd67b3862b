"""What a change to a script's calls would bring: the stages that ran, laid out on their threads, with the change made.

The step takes the longest of what happens side by side, as for options (:mod:`pipeline_lab.advice.what_if`): the step itself,
each stage on the calls that run at once, each thread that runs serial stages one after another, Python, the pool, the cores.
What the model does not explain of the script as it is is put on the term that binds. What nobody measured (whether a function
releases Python's lock, how much of it whole batches save or comes before its random draws, what other programs will take) is assumed both ways, which gives the
prediction its range.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from pipeline_lab.advice.script.script_edits import (
    NOT_MEASURED,
    SIZES_UNKNOWN,
    Assumed,
    Stages,
    apply_edit,
    has_no_room,
    left_of_copies,
)
from pipeline_lab.advice.script.script_layout import EPOCHS, lay_out, share_cores, slow_down, starting_ns
from pipeline_lab.advice.script.script_run import ITS_BREAKS, ScriptRun
from pipeline_lab.advice.script.script_stages import ScriptStage
from pipeline_lab.advice.step_terms import ORDER, PROCESSOR, STEP, TURNS, Term
from pipeline_lab.advice.what_if import LEAST_NS, MOST_UNEXPLAINED, NOT_UNDERSTOOD, WAITED_SHARE
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import Unavailable
from pipeline_lab.pipeline.changes import (
    AUTOTUNE,
    THREADS,
    Edit,
    Insert,
    IntoStep,
    OneIterator,
    SetTraining,
    stops_tuning,
)
from pipeline_lab.pipeline.recipe import Recipe
from pipeline_lab.units import format_duration

LEAST_ERROR_PERCENT = 2.0
"""No prediction is surer than that, percent of the step."""
MOST_PERCENT = 99.9
CAUTIOUS, HOPEFUL = 0.3, 4.0
"""How much less or more than usual a call may take beside its work: few ops, or a hundred of them."""
LEAST_ENDS = 0.5
"""Part of the time of the ends of iterators that were seen which others take at least, on average."""
ENDS_OF_WORKERS_NS = 5e9
"""For so long Keras 2 may wait at the end of an epoch over a ``Sequence`` with workers: its queue's timeout (``OrderedEnqueuer.get``)."""
LOCK_UNKNOWN = "How much of its work holds Python's lock, so that threads take turns, was not measured; compare an epoch with and without them."
ENDS_UNKNOWN = (
    "Keras 2 waits up to 5 s at the end of an epoch over a Sequence with workers, and the run saw no second epoch begin, so how much "
    "of a step that is cannot be told."
)
LESS, MORE = 0.5, 1.5
"""Times what the pipeline is taken to add to a step on the same cores, which it may add as well."""
MOST_UNEXPLAINED_WAIT = 4.0
"""The same bound as ``MOST_UNEXPLAINED`` for a script that was seen to wait for its input: then it is the pipeline that takes so long,
whatever its parts say (threads that wait for a core or for Python's lock are not in their times)."""


@dataclass(frozen=True)
class ScriptPrediction:
    """What the script would be like with a change; times in ns for one step.

    Attributes:
        step_ns: The step.
        terms: What it is the longest of, the longest first.
        gain_percent: How much shorter it becomes; below 0 if longer.
        low_percent, high_percent: Bounds of the gain on a machine that others use as they did.
        quiet_percent: The most that it gains on a machine that nobody else uses.
        notes: What it takes for granted, a sentence each.
    """

    step_ns: float
    terms: tuple[Term, ...]
    gain_percent: float
    low_percent: float
    high_percent: float
    quiet_percent: float
    notes: tuple[str, ...] = ()

    @property
    def is_longer(self) -> bool:
        return self.gain_percent < 0

    @property
    def bounds_percent(self) -> tuple[float, float]:
        """Bounds of how much less time it takes, or of how much more where it is longer; the smaller one first."""
        return (-self.high_percent, -self.low_percent) if self.is_longer else (self.low_percent, self.high_percent)


def explain_script(run: ScriptRun) -> ScriptRun | Unavailable:
    """Put what the model does not explain of the script on the term that binds, so that it gives the script's own step."""
    run = share_cores(run)
    terms, steady_ns = lay_out(run, run.stages, Assumed(run.other_cores)), run.steady_ns
    found_ns, binding = terms[0].time_ns, terms[0].name
    if binding == STEP and found_ns >= (1.0 - WAITED_SHARE) * steady_ns:
        return replace(run, ceiling_ns=max(LEAST_NS, run.ceiling_ns + steady_ns - found_ns))
    factor = steady_ns / found_ns
    if binding == TURNS:
        factor = (steady_ns - run.ceiling_ns) / (found_ns - run.ceiling_ns)
    elif binding == STEP:
        others = [term.time_ns for term in terms if term.name not in (STEP, PROCESSOR)]
        factor = steady_ns / max(others, default=LEAST_NS)
    if binding.startswith(ORDER):
        return run
    waits = run.ceiling_ns <= (1.0 - WAITED_SHARE) * steady_ns
    if binding == STEP and run.is_calibrated and run.starting_ns:
        return replace(run, starting_ns=run.starting_ns + steady_ns - found_ns)  # later batches of an epoch wait, too
    if not 1.0 / MOST_UNEXPLAINED <= factor <= (MOST_UNEXPLAINED_WAIT if waits else MOST_UNEXPLAINED):
        ran, said = format_duration(run.step_ns), format_duration(found_ns + run.starting_ns)
        why = "something else slows it down" if factor > 1.0 else "the machine was slower while they were measured"
        return Unavailable(NOT_UNDERSTOOD.format(ran=ran, said=said, why=why))
    if binding == PROCESSOR:
        pipeline_ns = max((term.time_ns for term in terms if term.name not in (STEP, PROCESSOR)), default=LEAST_NS)
        if not waits or steady_ns > MOST_UNEXPLAINED * pipeline_ns:
            return _with_busier_pipeline(run) if waits and factor > 1.0 else replace(run, cpu_factor=factor)
        factor = steady_ns / pipeline_ns
    processor_ns = next((term.time_ns for term in terms if term.name == PROCESSOR), 0.0)
    return replace(run, pipeline_factor=factor, cpu_factor=min(1.0, steady_ns / max(LEAST_NS, processor_ns)))


def _with_busier_pipeline(run: ScriptRun) -> ScriptRun:
    """Let the pipeline's part of the processor time fill the step that waits for it; the step's own part stays what it is."""
    assert run.step_cpu_ns is not None
    work_cpu_ns = run.cpu_share * sum(stage.work_ns for stage in run.stages)
    factor = (run.steady_ns * run.free_cores(run.other_cores) - run.step_cpu_ns) / max(LEAST_NS, work_cpu_ns)
    return replace(run, cpu_factor=factor, step_cpu_ns=run.step_cpu_ns / factor)


def predict_change(
    run: ScriptRun, edits: Sequence[Edit], *, pool_threads: int | None = None
) -> ScriptPrediction | Unavailable:
    """Predict the step of a script with a change.

    Args:
        run: The script, explained.
        edits: What is done to its calls.
        pool_threads: Threads of the pool, where they change as well.

    Returns:
        Why not, where the change's effect does not follow from what was measured, or it needs more memory than there is.
    """
    if (full := has_no_room(run, edits)) is not None:
        return full
    joins = any(isinstance(edit, OneIterator) for edit in edits)
    others = [edit for edit in edits if not isinstance(edit, OneIterator) and not stops_tuning(edit)]
    if len(others) < len(edits):
        found = predict_change(run, others, pool_threads=pool_threads)
        between = _with_one_iterator if joins else _with_quick_ends
        return found if isinstance(found, Unavailable) else between(run, found)
    named = [
        edit.arguments.get(THREADS) for edit in edits if isinstance(edit, Insert) and edit.method == "with_options"
    ]
    threads = next((each for each in (pool_threads, *named) if isinstance(each, int)), run.pool_threads)
    for edit in edits:
        if isinstance(edit, SetTraining) and edit.name == "steps_per_execution" and isinstance(edit.value, int):
            return _with_steps_at_once(run, edit.value)
    changed = replace(run, pool_threads=threads)

    def make(stages: Stages, assumed: Assumed) -> Stages | Unavailable:
        if threads != run.pool_threads:
            stages = _with_threads(run, stages, threads)
        for edit in others:
            made = apply_edit(changed, stages, edit, assumed)
            if isinstance(made, Unavailable):
                return made
            stages = made
        return stages

    found = _with_smaller_copies(run, _predict(run, changed, make), others)
    has_workers = any(isinstance(edit, SetTraining) and edit.name == "workers" for edit in edits)
    if isinstance(found, Unavailable) or not has_workers:
        return found
    found = _with_unknown_lock(run, found)
    return _with_ends_of_workers(run, found) if is_of_keras_2(run.recipe) else found


def is_of_keras_2(recipe: Recipe) -> bool:
    """Say whether a script trains on a ``Sequence`` of Keras 2."""
    calls = () if recipe.trained is None else recipe.upstream(recipe.trained.call)
    return any(part.kind == "Sequence" for call in calls for part in call.python)


def _with_steps_at_once(run: ScriptRun, count: int) -> ScriptPrediction | Unavailable:
    """Predict a step of several that one call runs: the Python between calls and what launches them is shared by them.

    Nothing else of the step becomes shorter, its wait included, and the input has to keep up. Seven published scripts were
    measured with and without it (``benchmarks.scripts``): both together, but for one of the steps' share, told the gain to
    1 to 9 % of the step, Python alone fell short by up to 14 %.
    """
    if run.between_ns is None:
        return Unavailable(NOT_MEASURED.format(what="steps_per_execution"))
    others = [
        term for term in lay_out(run, run.stages, Assumed(run.other_cores)) if term.name not in (STEP, PROCESSOR, TURNS)
    ]

    def left(saved_ns: float) -> Term:
        own = Term(STEP, run.step_ns - (1.0 - 1.0 / count) * saved_ns)
        kept = [replace(term, time_ns=term.time_ns + run.starting_ns) for term in others[:1]]
        return max(own, *kept, key=lambda term: term.time_ns)

    python_ns, launched_ns = run.between_ns
    likely, low = (100.0 * (1.0 - left(saved_ns).time_ns / run.step_ns) for saved_ns in (launched_ns, python_ns / 2))
    error = LEAST_ERROR_PERCENT + run.noise_percent * max(0.0, likely / 100.0)
    return ScriptPrediction(
        step_ns=left(launched_ns).time_ns,
        terms=(left(launched_ns),),
        gain_percent=likely,
        low_percent=low - error,  # callbacks and progress bars are part of that Python, and some of it stays
        high_percent=min(likely + error, MOST_PERCENT),
        quiet_percent=likely,
        notes=tuple(_notes(run)),
    )


def _with_one_iterator(run: ScriptRun, found: ScriptPrediction) -> ScriptPrediction:
    """Take off a predicted step the making of iterators and their ends, and some of what else lies between epochs.

    The one end that is left may by chance take as long as all of them did, up to a minute. The first batches of epochs may be made ahead
    then, or have to be waited for as before.
    """
    least_ns = run.making_ns
    likely_ns = run.making_ns + run.ends_ns + ITS_BREAKS * run.breaks_ns
    most_ns = run.making_ns + run.ends_ns + run.breaks_ns + run.starting_ns
    return _shortened(run, found, least_ns, likely_ns, most_ns)


def _with_quick_ends(run: ScriptRun, found: ScriptPrediction) -> ScriptPrediction:
    """Take off a predicted step the ends of iterators, and some of what else lies between epochs, where such an end may go unseen."""
    likely_ns = run.ends_ns + ITS_BREAKS * run.breaks_ns
    return _shortened(run, found, LEAST_ENDS * run.ends_ns, likely_ns, run.ends_ns + run.breaks_ns)


def _with_smaller_copies(
    run: ScriptRun, found: ScriptPrediction | Unavailable, edits: Sequence[Edit]
) -> ScriptPrediction | Unavailable:
    """Take off a predicted step what copies of smaller elements save; what else holds the device up meanwhile may hide it."""
    for call in (edit.call for edit in edits if isinstance(edit, IntoStep)):
        if isinstance(found, Unavailable):
            return found
        left = left_of_copies(run, call)
        if left is None or run.copied_ns is None:
            return Unavailable(SIZES_UNKNOWN)
        saved_ns = (1.0 - left) * run.copied_ns
        found = _shortened(run, found, 0.0, saved_ns, saved_ns)
    return found


def _with_unknown_lock(run: ScriptRun, found: ScriptPrediction) -> ScriptPrediction:
    """Return what threads for Python bring where any part of its work may hold Python's lock: the middle between none of it and all."""
    likely = (found.low_percent + found.high_percent) / 2
    return replace(
        found,
        step_ns=run.step_ns * (1.0 - likely / 100.0),
        gain_percent=likely,
        quiet_percent=max(likely, found.quiet_percent),
        notes=(*found.notes, LOCK_UNKNOWN),
    )


def _with_ends_of_workers(run: ScriptRun, found: ScriptPrediction) -> ScriptPrediction | Unavailable:
    """Add to a predicted step that Keras 2 waits for workers where an epoch ends, and where an evaluation does."""
    if run.epoch_batches is None:
        return Unavailable(ENDS_UNKNOWN)
    per_step_ns = ENDS_OF_WORKERS_NS / run.epoch_batches
    return _shortened(run, found, -2.0 * per_step_ns, -per_step_ns, -per_step_ns)


def _shortened(
    run: ScriptRun, found: ScriptPrediction, least_ns: float, likely_ns: float, most_ns: float
) -> ScriptPrediction:
    low, likely, high = (100.0 * ns / run.step_ns for ns in (least_ns, likely_ns, most_ns))
    return replace(
        found,
        step_ns=max(LEAST_NS, found.step_ns - likely_ns),
        gain_percent=min(found.gain_percent + likely, MOST_PERCENT),
        low_percent=found.low_percent + low,
        high_percent=min(found.high_percent + high, MOST_PERCENT),
        quiet_percent=min(found.quiet_percent + likely, MOST_PERCENT),
    )


def predict_without(run: ScriptRun, calls: Sequence[int], left: float = 0.0) -> ScriptPrediction:
    """Predict the step if the functions of some calls took that part of their time: none is the most that rewriting them can bring."""

    def make(stages: Stages, _: Assumed) -> Stages:
        return tuple(
            replace(stage, work_ns=left * stage.work_ns) if set(calls) & set(stage.calls) else stage for stage in stages
        )

    found = _predict(run, run, make)
    assert isinstance(found, ScriptPrediction)
    return found


def _predict(
    run: ScriptRun, changed: ScriptRun, make: Callable[[Stages, Assumed], "Stages | Unavailable"]
) -> ScriptPrediction | Unavailable:
    here = Assumed(run.other_cores)
    views = (
        replace(here, overhead=CAUTIOUS, split=0.0),
        replace(here, holds_lock=False, overhead=HOPEFUL, split=1.0),
        Assumed(0.0, holds_lock=False, overhead=HOPEFUL, split=1.0),
        here,
    )
    outcomes = []
    for assumed in views:
        stages = make(run.stages, assumed)
        if isinstance(stages, Unavailable):
            return stages
        outcomes.append(_outcome(changed, stages, assumed))
    if run.slowing:  # by how much the pipeline slows the step down is known roughly
        for place, times in ((0, LESS), (1, MORE)):
            made = make(run.stages, views[place])
            assert not isinstance(made, Unavailable)
            outcomes[place] = _outcome(slow_down(changed, times), made, views[place])
    low, high, _, likely = (100.0 * (1.0 - outcome.step_ns / run.step_ns) for outcome in outcomes)
    own_quiet_ns = _outcome(run, run.stages, Assumed(0.0)).step_ns
    gained = min(
        1.0, max(0.0, likely / 100.0)
    )  # what the run's own step adds: it is uncertain, what is left of it is not
    error = LEAST_ERROR_PERCENT * (1.0 - gained) + run.noise_percent * min(gained, 1.0 - gained)
    return ScriptPrediction(
        step_ns=outcomes[3].step_ns,
        terms=outcomes[3].terms,
        gain_percent=likely,
        low_percent=min(low, likely) - error,
        high_percent=min(max(high, likely) + error, max(run.most_gain_percent, high) + error, MOST_PERCENT),
        quiet_percent=100.0 * (1.0 - outcomes[2].step_ns / own_quiet_ns),
        notes=tuple(_notes(run)),
    )


@dataclass(frozen=True)
class _Outcome:
    """A mean step, ns, and what it consists of: the longest term, and what the starts of epochs add."""

    step_ns: float
    terms: tuple[Term, ...]


def _outcome(run: ScriptRun, stages: Stages, assumed: Assumed) -> _Outcome:
    terms, added_ns = lay_out(run, stages, assumed), starting_ns(run, stages, assumed)
    added = [Term(EPOCHS, added_ns)] if added_ns else []
    return _Outcome(terms[0].time_ns + added_ns, tuple(sorted([*terms, *added], key=lambda term: -term.time_ns)))


def _with_threads(run: ScriptRun, stages: Stages, threads: int) -> Stages:
    """Let stages whose calls wait for the pool's threads have as many as they ask for."""
    return tuple(
        replace(stage, at_once=float(min(asked, threads)))
        if stage.is_pooled and (asked := _asked(run, stage, threads))
        else stage
        for stage in stages
    )


def _asked(run: ScriptRun, stage: ScriptStage, threads: int) -> int | None:
    """Return the parallel calls that a stage's call asks for; None where it does not say."""
    asked = [run.recipe.call(number).arguments.get("num_parallel_calls") for number in stage.calls]
    known = [threads if each == AUTOTUNE else each for each in asked if isinstance(each, int)]
    return max(known, default=None)


def _notes(run: ScriptRun) -> Iterator[str]:
    if not run.is_calibrated:
        yield "The compute-only step was not timed; what is left of a step without its wait stands for it."
    if run.other_cores > 0.2 * run.cores:
        yield f"Other programs used {run.other_cores:.1f} of {run.cores:.0f} cores, so all of it is less sure."
