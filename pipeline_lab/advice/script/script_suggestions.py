"""What to change in a watched script: the fix of the verdict's cause first, then whatever else the model says is worth it.

Each suggestion names the line, the call as it is and as it would be, what it gains and what holds that back. Where Python has
to be rewritten, or the step itself is the limit, that comes first.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from pipeline_lab.advice.script.cache_room import NoRoom
from pipeline_lab.advice.script.script_model import LOCK_UNKNOWN, ScriptPrediction, predict_change, predict_without
from pipeline_lab.advice.script.script_run import ScriptRun
from pipeline_lab.advice.script.script_stages import numbers_of
from pipeline_lab.analysis.causes import BREAKS_WHY, ENDS_WHY, InputCause, VerdictClass
from pipeline_lab.analysis.tf_data.written_words import name_python, name_stage
from pipeline_lab.analysis.verdict.input_causes import MANY_CALLS, TINY_CALL_NS
from pipeline_lab.analysis.verdict.verdict import LEAST_GAIN_PERCENT, Suggestion, Verdict
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import Unavailable
from pipeline_lab.pipeline.change_words import before_after
from pipeline_lab.pipeline.changes import AUTOTUNE, THREADS, Change, Edit, Effect, Insert, Risk, SetArgument
from pipeline_lab.pipeline.changing_state import find_changed_state
from pipeline_lab.pipeline.random_draws import draws_at_random
from pipeline_lab.pipeline.recipe import INSIDE, Recipe
from pipeline_lab.pipeline.rewrites import ON_REQUEST, find_changes, find_earlier_caches
from pipeline_lab.units import format_duration, format_percent

MOST = 6
"""Suggestions that are handed out."""
CALLS = (4, 8, 16, 32)
"""Calls at once that are tried where these wait and do not compute."""
AS_FAST = 0.97
"""More calls are only proposed where they bring the step below this part of what fewer do."""
BUSY_CORES = 0.2
"""Part of the cores that others may use before it is worth a word."""
MUCH_MORE_PERCENT = 5.0
"""Points by which a quiet machine has to gain more before it is worth a word."""
LEFT_OF_PYTHON = 0.5
"""Part of a Python function's time that TensorFlow ops, or processes, still take: published scripts kept 0.4 to 0.6 (``benchmarks.scripts``)."""
WEIGHTS = {Risk.LOW: 1.0, Risk.SOME: 1.5, Risk.HIGH: 3.0}
"""What a gain is divided by before suggestions are ordered by it."""

FIXES: dict[InputCause, tuple[str, ...]] = {
    InputCause.SOURCE: (
        "interleave",
        "parallel-interleave",
        "cache",
        "cache-before-shuffle",
        "cache-shuffled",
        "split-cache",
        "disk-cache",
    ),
    InputCause.UNDER_PARALLEL: ("parallel-map", "parallel-interleave", "interleave", "batch-first", "parallel-draws"),
    InputCause.POOL_BOUND: ("pool", "batch-first"),
    InputCause.CPU_BOUND: (
        "cache",
        "cache-before-shuffle",
        "cache-shuffled",
        "split-cache",
        "batch-first",
        "disk-cache",
    ),
    InputCause.ORDERING: ("any-order",),
    InputCause.PYTHON_BOUND: ("workers", "generator-batches", "batch-first", "parallel-map", "cache-python"),
    InputCause.PYTHON_WAITS: ("parallel-python", "workers"),
    InputCause.CALL_OVERHEAD: ("batch-first",),
    InputCause.NO_OVERLAP: ("prefetch",),
    InputCause.OWN_BATCHES: (),
    InputCause.LOOP_START: (),
    InputCause.EPOCH_START: (
        "shuffle-first",
        "cache",
        "cache-before-shuffle",
        "cache-shuffled",
        "split-cache",
        "cache-python",
        "disk-cache",
    ),
}
"""The rewrites that fix a cause, the best first; where none applies, the cause's own words stand alone."""


IN_MEMORY = frozenset({"cache", "cache-before-shuffle", "cache-shuffled", "split-cache", "cache-python"})
"""Caches beside which one in files is another way to the same gain, which comes last."""
COUNTED: dict[InputCause | None, tuple[str, ...]] = {
    InputCause.PYTHON_WAITS: ("parallel-python",),
    InputCause.POOL_BOUND: ("pool",),
}
"""Rewrites that a cause's own suggestion makes with a number of calls that the model has found to be enough."""
OF_LIBRARY = (
    "Replace {call} with calls of your own that take num_parallel_calls=tf.data.AUTOTUNE: interleave for the files, map to parse their "
    "records."
)
"""Stands for the advice to run a stage in parallel that a library's function makes."""


@dataclass(frozen=True)
class ScriptCase:
    """A script that is to become faster.

    Attributes:
        run: What it measured, explained; why not, where the model cannot account for it.
        recipe: Of the script.
        verdict: What holds it back.
        is_eager: Its steps run op by op, so that no call of a function could hold several.
    """

    run: ScriptRun | Unavailable
    recipe: Recipe
    verdict: Verdict
    is_eager: bool = False

    @property
    def cause(self) -> InputCause | None:
        is_input = self.verdict.verdict_class is VerdictClass.INPUT_BOUND
        return InputCause(self.verdict.cause) if is_input and self.verdict.cause else None

    @property
    def blamed(self) -> tuple[int, ...]:
        """Numbers of the calls of the stage that the verdict blames."""
        trained = self.recipe.trained
        calls = () if trained is None else tuple(self.recipe.upstream(trained.call))
        return numbers_of(self.verdict.calls, calls)

    @property
    def carried_over(self) -> str:
        """Why workers would carry batches over from one epoch to the next; empty where they would not, or nobody knows."""
        trained = self.recipe.trained
        return (trained and trained.carried_over) or ""

    @property
    def blames_library(self) -> bool:
        """Whether a function of a library makes that stage, and the script only calls the function."""
        by_number = {call.number: call for call in self.recipe.calls}
        return bool(self.blamed) and not any(by_number[number].is_direct for number in self.blamed)


def suggest_for_script(case: ScriptCase, in_words: Sequence[Suggestion]) -> tuple[Suggestion, ...]:
    """Return what to try: the cause's fix, then what else helps, the best gain per risk first.

    Where input is not the limit, words without a gain stand behind whatever gains much.

    Args:
        case: The script.
        in_words: What the verdict suggests without a model, the cause's own words first.
    """
    counted = () if isinstance(case.run, Unavailable) else COUNTED.get(case.cause, ())
    changes = [change for change in _that_fit(case) if change.rewrite not in counted]
    in_memory = any(change.rewrite in IN_MEMORY for change in changes)
    instead = [change for change in changes if change.rewrite == "disk-cache" and in_memory]
    changes = [change for change in changes if change not in instead]
    words = [_bounded(case, each) if case.cause is not None else each for each in in_words]
    own, others = (words[:1], words[1:]) if case.cause is not None else (words, [])
    workers = next((change for change in changes if change.rewrite == "workers"), None)
    if own and case.carried_over and case.cause is InputCause.PYTHON_BOUND:
        own = [replace(own[0], side_effects=(*own[0].side_effects, case.carried_over))]
    if own and workers is not None and case.cause is InputCause.PYTHON_BOUND:  # what its words ask for
        changes.remove(workers)
        own = [_with_threads(own[0], word_change(case, workers, ""))]
    fixes = sorted(_fixes(case, changes), key=lambda each: not _gains(each, MUCH_MORE_PERCENT))
    if is_of_library := case.cause is InputCause.UNDER_PARALLEL and not fixes and case.blames_library:
        own = [
            replace(each, change=OF_LIBRARY.format(call=str(case.verdict.calls[0]).partition(INSIDE)[0]))
            for each in own
        ]
    if case.cause is not None and (busy := _ask_for_quiet(case, fixes)) is not None:
        fixes.insert(0, busy)
    helps = any(_gains(each, LEAST_GAIN_PERCENT) for each in fixes)
    is_rewrite = case.cause in (InputCause.PYTHON_BOUND, None) or (case.cause is InputCause.CPU_BOUND and not helps)
    head = [*own, *fixes] if is_rewrite or not fixes else fixes
    if case.cause is InputCause.EPOCH_START:  # what to shuffle, and when, is no rewrite
        head = [*fixes, *own]
    taken = {one.change for one in head}
    worth = [found for change in changes if (found := _worth(case, change)) and found.change not in taken]
    rest = sorted([*others, *worth], key=lambda each: -_rank(each))
    if case.verdict.verdict_class is VerdictClass.HOST_CONTENTION:  # what to take off the cores is said by a line first
        ordered = [*rest, *head]
    elif case.cause is None:
        ordered = sorted([*head, *rest], key=lambda each: -_rank(each))
    else:
        ordered = [*rest, *head] if is_of_library else [*head, *rest]
    last = [found for change in instead if (found := _worth(case, change))]
    return tuple([*ordered, *last][:MOST])


def _rank(suggestion: Suggestion) -> float:
    """Return the gain per risk; what gains little, or nobody knows how much, has none."""
    gain = suggestion.predicted_gain_percent
    known = gain if isinstance(gain, float) and gain >= MUCH_MORE_PERCENT else 0.0
    return known / (WEIGHTS[Risk(suggestion.risk)] if suggestion.risk else 1.0)


def _that_fit(case: ScriptCase) -> Iterator[Change]:
    """Yield the changes that apply; a cache that does not fit into memory stands where it does, if there is such a place."""
    found = find_changes(case.recipe)
    is_joined = any(change.joins_epochs for change in found)
    texts = {file: text for file in case.recipe.files if (text := case.recipe.text(file)) is not None}
    for change in found:
        if change.rewrite == "cache-python" and _draws(case):
            continue  # every epoch would see the draws of the first one, which nobody wants unasked
        if change.rewrite == "workers" and case.carried_over:
            continue
        if any(find_changed_state(case.recipe, edit, texts) for edit in change.edits):
            continue
        if (change.rewrite == "steps-per-execution" and case.is_eager) or (change.stops_tuning and is_joined):
            continue
        if not _is_too_large(case, change):
            yield change
        elif change.rewrite == "cache":
            earlier = find_earlier_caches(case.recipe, case.recipe.trained)
            yield from itertools.islice((each for each in earlier if not _is_too_large(case, each)), 1)


def _draws(case: ScriptCase) -> bool:
    """Say whether Python of the pipeline is seen to draw at random."""
    trained = case.recipe.trained
    calls = () if trained is None else case.recipe.upstream(trained.call)
    return any(draws_at_random(case.recipe, part.function) for call in calls for part in call.python)


def _is_too_large(case: ScriptCase, change: Change) -> bool:
    return not isinstance(case.run, Unavailable) and isinstance(predict_change(case.run, change.edits), NoRoom)


def _fixes(case: ScriptCase, changes: Sequence[Change]) -> Iterator[Suggestion]:
    """Yield the changes that fix the verdict's cause, with their gain however small."""
    if case.cause is None:
        return
    if case.cause is InputCause.PYTHON_WAITS:
        yield from _more_waiting(case)
    if case.cause is InputCause.POOL_BOUND:
        yield from _wider_pool(case)
    for key in FIXES[case.cause]:
        for change in changes:
            if change.rewrite == key and _is_about(case, change) and not _is_done(case, change):
                yield word_change(case, change, case.cause.recommendation.why)


def _ask_for_quiet(case: ScriptCase, fixes: Sequence[Suggestion]) -> Suggestion | None:
    """Ask for a quiet machine where other programs fill the cores and nothing that could be changed gains anything."""
    run = case.run
    if isinstance(run, Unavailable) or run.other_cores < FULL_CORES * run.cores or case.cause not in CORE_CAUSES:
        return None
    if any(_gains(each, MUCH_MORE_PERCENT) for each in fixes):
        return None
    used = f"{run.other_cores:.1f} of {run.cores:.0f} cores"
    return Suggestion(
        "Stop the other programs, or watch the script on a quiet machine, before you change it.",
        f"They use {used}, and the input waits for what is left.",
        QUIET_UNKNOWN,
    )


def _gains(suggestion: Suggestion, percent: float) -> bool:
    gain = suggestion.predicted_gain_percent
    return isinstance(gain, float) and gain >= percent


CORE_CAUSES = (InputCause.UNDER_PARALLEL, InputCause.CPU_BOUND, InputCause.POOL_BOUND)
"""Causes that full cores look like."""
QUIET_UNKNOWN = Unavailable("How long the script takes on a quiet machine was not measured.")
COPIES_WHY = "Copies of input hold the device up."
SHARED = "The pipeline works on the cores that the training step needs."
FULL_CORES = 0.5
"""Part of the cores that other programs take at least where they are what holds the input up."""


def _is_done(case: ScriptCase, change: Change) -> bool:
    """Say whether TensorFlow's rewrites run the call in parallel already, with all threads of the pool."""
    if isinstance(case.run, Unavailable) or change.rewrite not in ("parallel-map", "parallel-draws"):
        return False
    ran = [stage for stage in case.run.stages if change.call in stage.calls]
    return any(stage.works_ahead and stage.at_once >= case.run.pool_threads > 1 for stage in ran)


def _is_about(case: ScriptCase, change: Change) -> bool:
    """Say whether a change touches the blamed stage: a cache, a prefetch and the training do wherever they are."""
    if "cache" in change.rewrite or change.rewrite in ("prefetch", "workers", "pool") or not case.blamed:
        return True
    touched = {change.call, *(getattr(edit, "before", None) for edit in change.edits)}
    return not touched.isdisjoint(case.blamed)


def _more_waiting(case: ScriptCase) -> Iterator[Suggestion]:
    """Let more calls wait at once: a number well above the cores, and as many threads."""
    for number in case.blamed:
        call = case.recipe.call(number)
        if call.method not in ("map", "interleave") or not call.is_direct or isinstance(case.run, Unavailable):
            continue
        fewest = _fewest(case.run, partial(_calls_at_once, number))
        if fewest is None:
            continue
        change = Change(
            "parallel-python",
            number,
            (SetArgument(number, "num_parallel_calls", fewest),),
            Effect.NOTHING,
            Risk.LOW,
            f"Let {fewest} calls of {call.words} ({call.place}) wait at once, and give the pool as many threads: "
            f"options.threading.private_threadpool_size = {fewest}; AUTOTUNE stays at the cores.",
            ("The calls run in several Python threads; their function must not change what they share.",),
            call.place,
        )
        yield word_change(case, change, InputCause.PYTHON_WAITS.recommendation.why, pool_threads=fewest)


def _calls_at_once(call: int, count: int) -> tuple[Edit, ...]:
    return (SetArgument(call, "num_parallel_calls", count),)


def _wider_pool(case: ScriptCase) -> Iterator[Suggestion]:
    """Give the pool as many threads as the calls at once ask for."""
    trained = case.recipe.trained
    fewest = None if isinstance(case.run, Unavailable) else _fewest(case.run, lambda _: ())
    if fewest is None or trained is None or isinstance(case.run, Unavailable):
        return
    edit = Insert(trained.call, "with_options", {THREADS: fewest})
    words = (
        f"Give the pool {fewest} threads: options.threading.private_threadpool_size = {fewest}, with_options(options)."
    )
    also = (f"{fewest} threads instead of {case.run.pool_threads}.",)
    place = case.recipe.call(trained.call).place
    change = Change("pool", trained.call, (edit,), Effect.NOTHING, Risk.LOW, words, also, place)
    yield word_change(case, change, InputCause.POOL_BOUND.recommendation.why)


def _fewest(run: ScriptRun, edits: Callable[[int], Sequence[Edit]]) -> int | None:
    """Return the fewest calls at once, with as many threads, that are about as fast as the most; None where nobody can tell."""
    steps = {
        count: found.step_ns
        for count in CALLS
        if isinstance(found := predict_change(run, edits(count), pool_threads=count), ScriptPrediction)
    }
    return next((count for count, step_ns in steps.items() if AS_FAST * step_ns <= min(steps.values())), None)


def _worth(case: ScriptCase, change: Change) -> Suggestion | None:
    """Return a change that gains enough to be worth trying; None where it does not, or nobody can tell."""
    if isinstance(case.run, Unavailable) or change.effect is Effect.CONTENT:
        return None
    found = predict_change(case.run, change.edits)
    if isinstance(found, Unavailable) or found.gain_percent < LEAST_GAIN_PERCENT:
        return None
    is_shared = case.cause is None and case.run.slowing > 0.0
    if change.joins_epochs:
        is_sleep = case.run.ends_ns > case.run.making_ns + case.run.breaks_ns
        return word_change(case, change, ENDS_WHY if is_sleep else BREAKS_WHY)
    if change.fills_step:
        return word_change(case, change, COPIES_WHY)
    return word_change(case, change, SHARED if is_shared else "")


def word_change(case: ScriptCase, change: Change, why: str, *, pool_threads: int | None = None) -> Suggestion:
    """Put a change into a suggestion, with what it gains.

    Args:
        case: The script.
        change: What to do.
        why: What speaks for it; ``{stage}`` and ``{python}`` stand for the blamed stage and its functions.
        pool_threads: Threads of the pool, where they change as well.
    """
    run, before, after = case.run, *before_after(case.recipe, change)
    found = run if isinstance(run, Unavailable) else predict_change(run, change.edits, pool_threads=pool_threads)
    bounds = None if isinstance(found, Unavailable) else (max(0.0, found.low_percent), max(0.0, found.high_percent))
    return Suggestion(
        change=change.words,
        why=_why(case, why),
        predicted_gain_percent=found if isinstance(found, Unavailable) else round(found.gain_percent, 1),
        side_effects=change.also,
        risk=change.risk.value,
        place=change.place,
        before=before,
        after=after,
        gain_range_percent=bounds and (round(bounds[0], 1), round(bounds[1], 1)),
        held_back="" if isinstance(found, Unavailable) or isinstance(run, Unavailable) else hold_back(run, found),
        request=change.request if change.rewrite in ON_REQUEST else "",
    )


def _why(case: ScriptCase, why: str) -> str:
    python = name_python(case.verdict.calls)
    stage = name_stage(case.verdict.calls, case.verdict.stage or "")
    return why.format(stage=stage, python=python and f" in {python}")


def hold_back(run: ScriptRun, found: ScriptPrediction) -> str:
    """Say what keeps a gain small: other programs, or what limits the step then."""
    is_small = found.gain_percent < LEAST_GAIN_PERCENT
    gain = "Little gain" if is_small else f"{format_percent(round(found.gain_percent, 1))} less"
    if run.other_cores > BUSY_CORES * run.cores and found.quiet_percent >= found.gain_percent + MUCH_MORE_PERCENT:
        used = f"{run.other_cores:.1f} of {run.cores:.0f} cores"
        return (
            f"{gain} while other programs use {used}; up to {format_percent(found.quiet_percent)} on a quiet machine."
        )
    limit = found.terms[0]
    if is_small:
        return f"Little gain: {limit.name} takes {format_duration(limit.time_ns)} of the step all the same."
    return f"A step then takes {format_duration(found.step_ns)}, limited by: {limit.name}."


def _with_threads(words: Suggestion, taken: Suggestion) -> Suggestion:
    """Return words about Python that several threads may run, with the edit, and its gain where that is known."""
    own = words if isinstance(taken.predicted_gain_percent, Unavailable) else taken
    return replace(
        taken,
        change=words.change,
        why=words.why,
        predicted_gain_percent=own.predicted_gain_percent,
        gain_range_percent=own.gain_range_percent,
        held_back=LOCK_UNKNOWN,
    )


def _taking_no_time(case: ScriptCase) -> list[int]:
    """Return the calls that take no time once all is done that the cause's words ask for: a cache spares all before it, too."""
    if case.cause is InputCause.CPU_BOUND and case.recipe.trained is not None:
        return [call.number for call in case.recipe.upstream(case.recipe.trained.call)]
    return [*case.blamed, *_one_by_one(case)]


def _one_by_one(case: ScriptCase) -> Iterator[int]:
    """Yield the calls that hand on many elements of a batch for next to nothing each, where that is what costs: whole batches save all of it."""
    if case.cause is InputCause.CALL_OVERHEAD and not isinstance(case.run, Unavailable):
        for stage in case.run.stages:
            if stage.visits >= MANY_CALLS and stage.work_ns < TINY_CALL_NS * stage.visits:
                yield from stage.calls


def _bounded(case: ScriptCase, suggestion: Suggestion) -> Suggestion:
    """Give words about the blamed stage the line, and the most that they can gain: the stage taking no time, or running on all threads."""
    place = next((call.place for call in case.verdict.calls if call.place is not None), None)
    text = next((call.text for call in case.verdict.calls if call.place is not None), "")
    placed = replace(suggestion, place=place, before=text)
    if (
        isinstance(case.run, Unavailable)
        or not case.blamed
        or suggestion.change == InputCause.NO_OVERLAP.recommendation.change
    ):
        return placed
    run = case.run
    if run.python_computes and not run.is_calibrated and run.busy_ns:
        run = replace(run, ceiling_ns=min(run.ceiling_ns, run.busy_ns))
    found = predict_without(run, calls := _taking_no_time(case))
    if case.cause is InputCause.UNDER_PARALLEL and not case.blames_library:
        at_once = predict_change(run, [SetArgument(number, "num_parallel_calls", AUTOTUNE) for number in case.blamed])
        found = found if isinstance(at_once, Unavailable) else at_once
    most = round(max(0.0, found.gain_percent), 1)  # the most that words can gain is never a loss
    if case.cause is InputCause.PYTHON_BOUND:
        found = predict_without(run, calls, LEFT_OF_PYTHON)
        gain = round(max(0.0, found.gain_percent), 1)
        placed = replace(placed, predicted_gain_percent=gain, gain_range_percent=(0.0, most))
    else:
        placed = replace(placed, predicted_gain_percent=most)
    return replace(placed, held_back=hold_back(run, found))
