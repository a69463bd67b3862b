"""From a diagnosis to one with advice: the verdict's suggestions, by the model where the run's options are known.

Where they are not, and for what no option fixes, each verdict has suggestions in words.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from pipeline_lab.advice.recorded_options import options_of
from pipeline_lab.analysis.causes import (
    BREAKS_WHY,
    DECORATE,
    FEWER_EVALUATIONS,
    FIRST_BATCHES,
    INTO_FUNCTION,
    LARGER_BATCH,
    LESS_BETWEEN_EPOCHS,
    LESS_PADDING,
    ONCE_TRACED,
    PYTHON_CHANGES,
    WITHOUT_FUNCTION,
    WITHOUT_PREDICT,
    WITHOUT_SWITCH,
    GapCause,
    InputCause,
    Recommendation,
    VerdictClass,
)
from pipeline_lab.analysis.diagnosis.inputs import is_run
from pipeline_lab.analysis.diagnosis.later_epochs import judged
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.analysis.steps.calibration import Calibration
from pipeline_lab.analysis.steps.interruptions import sum_percent
from pipeline_lab.analysis.steps.iterator_ends import serve_one_step
from pipeline_lab.analysis.steps.job_steps import MODERATE_PERCENT, JobSteps
from pipeline_lab.analysis.steps.recorded_steps import NO_STEPS, NO_STEPS_OF_JAX, STEP_MARKS
from pipeline_lab.analysis.tf_data.written_words import name_python, name_stage
from pipeline_lab.analysis.verdict.findings import ENDS_PERCENT, MOST_PERCENT, checkpoint_percent, evaluation_percent
from pipeline_lab.analysis.verdict.input_causes import GENERATOR
from pipeline_lab.analysis.verdict.recording_effects import has_device_work
from pipeline_lab.analysis.verdict.sampling_findings import MUCH_PADDING_PERCENT
from pipeline_lab.analysis.verdict.verdict import LEAST_GAIN_PERCENT, NO_GAIN, Suggestion, Verdict
from pipeline_lab.analysis.verdict.verdict_rules import find_last_host
from pipeline_lab.errors import Unavailable
from pipeline_lab.pipeline.iterator_rewrites import ONE_ITERATOR
from pipeline_lab.pipeline.recipe import OF_KERAS, PythonPart
from pipeline_lab.runs.run_documents import WrittenCall
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.units import NS_PER_S, format_count, format_duration, format_percent

TOO_SMALL = Unavailable("The gain is smaller than the prediction's own error.")


def find_recommendations(
    kind: VerdictClass,
    cause: str | None,
    stage: str | None,
    calls: tuple[WrittenCall, ...],
    lost_percent: float,
    calibration: Calibration | Unavailable,
    overlap_percent: float | None = None,
    *,
    is_of_jax: bool = False,
    is_on_cpu: bool = False,
) -> tuple[Suggestion, ...]:
    """Return what to try, the most promising first.

    Args:
        kind: The verdict's class.
        cause: Its cause, if known.
        stage: The blamed stage's iterator, if known.
        calls: What the user wrote for it.
        lost_percent: Share of the step that the class stands for; the most a perfect fix could save.
        calibration: Step and pipeline alone, if they were timed.
        overlap_percent: Share of the step that prefetching could save at most; None if a stage prefetches already, or
            it is not known.
        is_of_jax: The job is written in JAX.
        is_on_cpu: It has no accelerator.
    """
    if kind is VerdictClass.INPUT_BOUND:
        return _for_input(cause, stage, calls, calibration, overlap_percent)
    recommendation = (
        GapCause(cause).recommendation if kind is VerdictClass.IDLE_OTHER and cause else kind.recommendation
    )
    if recommendation is None:
        return ()
    there = recommendation.in_jax if is_of_jax else recommendation.on_cpu if is_on_cpu else ""
    change = there or recommendation.change
    return (Suggestion(change, recommendation.why, _gain(lost_percent) if recommendation.gains_all else NO_GAIN),)


def _for_input(
    cause: str | None,
    stage: str | None,
    calls: tuple[WrittenCall, ...],
    calibration: Calibration | Unavailable,
    overlap_percent: float | None,
) -> tuple[Suggestion, ...]:
    overlap_percent = _left_by_pipeline(overlap_percent, calibration)
    overlap = () if overlap_percent is None or overlap_percent < LEAST_GAIN_PERCENT else (_overlap(overlap_percent),)
    slow = InputCause(cause) if cause and cause != InputCause.NO_OVERLAP and stage is not None else None
    if slow is not None:
        recommendation = _WAITING_GENERATOR if slow is InputCause.SOURCE and stage == GENERATOR else slow.recommendation
        functions = name_python(calls)
        why = recommendation.why.format(stage=name_stage(calls, stage or ""), python=functions and f" in {functions}")
        change = _change(slow, recommendation, calls)
        if slow is InputCause.OWN_BATCHES:  # to make them ahead is what its advice says
            return (Suggestion(change, why, NO_GAIN if overlap_percent is None else _gain(overlap_percent)),)
        return (Suggestion(change, why, _gain_to(calibration)), *overlap)
    faster = VerdictClass.INPUT_BOUND.recommendation
    assert faster is not None
    advice = Suggestion(faster.change, faster.why, _gain_to(calibration))
    return (*overlap, advice) if cause == InputCause.NO_OVERLAP else (advice, *overlap)


def _change(cause: InputCause, recommendation: Recommendation, calls: tuple[WrittenCall, ...]) -> str:
    """Say what to do at which line; what to do about Python depends on how it is called."""
    kind = next((part.kind for call in calls for part in call.python), "")
    change = recommendation.change
    if cause is InputCause.PYTHON_BOUND and kind in PYTHON_CHANGES:
        change = PYTHON_CHANGES[kind].format(function=name_python(calls))
    place = next((call.place for call in calls if call.place is not None), None)
    return change if place is None else f"{place}: {change}"


def _overlap(percent: float | None) -> Suggestion:
    recommendation = InputCause.NO_OVERLAP.recommendation
    return Suggestion(recommendation.change, recommendation.why, NO_GAIN if percent is None else _gain(percent))


def _left_by_pipeline(percent: float | None, calibration: Calibration | Unavailable) -> float | None:
    """Return what overlap saves at most: a step then takes no less than the pipeline alone."""
    if percent is None or isinstance(calibration, Unavailable) or calibration.pipeline_only_ns is None:
        return percent
    longer_ns = max(calibration.pipeline_only_ns, calibration.device_only_ns)
    return min(percent, max(0.0, 100.0 * (1.0 - longer_ns / calibration.step_ns)))


def _gain_to(calibration: Calibration | Unavailable) -> float | Unavailable:
    """Return the most that input can gain: down to the compute-only step."""
    return NO_GAIN if isinstance(calibration, Unavailable) else _gain(100.0 - calibration.utilisation_percent)


def _gain(percent: float) -> float | Unavailable:
    """Return a gain that is worth naming, rounded."""
    return round(percent, 1) if percent >= LEAST_GAIN_PERCENT else TOO_SMALL


_WAITING_GENERATOR = Recommendation(
    "Let more processes or threads produce the generator's examples, let it yield whole batches, or interleave several "
    "generators with num_parallel_calls.",
    "The step waits for the Python generator, which itself waits for something else.",
)


def advise(diagnosis: Diagnosis) -> Diagnosis:
    """Fill in what to try next; a diagnosis that has suggestions already stays as it is."""
    if diagnosis.verdict.suggestions:
        return diagnosis
    found = _with_one_iterator_once(_suggestions(diagnosis))
    for add in (
        _with_iterator_ends,
        _with_breaks,
        _with_predicts,
        _without_repeats,
        _of_first_batches,
        _with_evaluations,
        _with_less_padding,
        _with_larger_batch,
        _with_checkpoints,
    ):
        found = add(diagnosis, found)
    first, *more = (*_for_last_host(diagnosis), *found) or (None,)
    if first is None:
        return diagnosis
    first = _name_next_step(first, diagnosis)
    return replace(diagnosis, verdict=replace(diagnosis.verdict, suggestions=(first, *more)))


IN_A_SCRIPT = frozenset({VerdictClass.INPUT_BOUND, VerdictClass.HOST_CONTENTION, VerdictClass.DISPATCH_BOUND})
"""Causes that changes of a script's pipeline or training call may remove, so that a search is worth its time."""
SCRIPT = "train.py"
"""What commands call a script whose name is not known."""


def _name_next_step(suggestion: Suggestion, diagnosis: Diagnosis) -> Suggestion:
    """Return a suggestion for a log with the command that carries on from it; a run of ours has other ways to do so, a job in JAX none."""
    path = Path(diagnosis.source.path)
    if (
        diagnosis.source.is_of_jax
        or suggestion.command
        or suggestion.is_snippet
        or (is_run(path) and not RunFolder(path).opened.is_dir())
    ):
        return suggestion
    verb = "fix" if diagnosis.verdict.verdict_class in IN_A_SCRIPT and not find_last_host(diagnosis) else "watch"
    return replace(suggestion, command=f"pipeline-lab {verb} {SCRIPT}")


def _for_last_host(diagnosis: Diagnosis) -> tuple[Suggestion, ...]:
    """Return what to do about the host that makes the others wait: nothing else makes their steps end sooner."""
    name, hosts = find_last_host(diagnosis), diagnosis.hosts
    if name is None or isinstance(hosts, Unavailable):
        return ()
    rows = {row["host"]: row for row in hosts.table.to_pylist()}
    last = rows.pop(name)
    waits_ns, takes_ns = (float(np.median([row[key] for row in rows.values()])) for key in ("input_wait_ns", "own_ns"))
    later_ns = last["input_wait_ns"] - waits_ns
    if later_ns >= (last["own_ns"] - takes_ns) / 2:
        change = f"On {name}: find out why its input is slower; compare its disk, network, share of the files and other programs with the other hosts'."
        why = f"Each step of {name} waits {format_duration(last['input_wait_ns'])} for input, of the other hosts {format_duration(waits_ns)}."
    else:
        change = f"On {name}: find out why its steps take longer; compare its device, clocks and other programs with the other hosts'."
        why = f"Without waiting for others, a step takes {name} {format_duration(last['own_ns'])}, the other hosts {format_duration(takes_ns)}."
    why += f" It comes last in {last['last_in']} of {format_count(hosts.common_steps)} steps, and the other hosts wait for it."
    return (Suggestion(change, why, _gain(100.0 * last["held_up_ns"] / hosts.common_ns)),)


def _suggestions(diagnosis: Diagnosis) -> tuple[Suggestion, ...]:
    """Return the model's suggestions; in words where it has none, or where input is not the bottleneck."""
    verdict, folder = diagnosis.verdict, RunFolder(Path(diagnosis.source.path))
    found = _by_model(diagnosis, folder)
    if found and verdict.verdict_class in (VerdictClass.INPUT_BOUND, VerdictClass.HOST_CONTENTION):
        return _with_overlap(found, diagnosis)
    if verdict.verdict_class is VerdictClass.UNKNOWN:
        return found or _mark_the_steps(diagnosis)
    eager, waits = _eager(diagnosis), verdict.verdict_class is VerdictClass.INPUT_BOUND
    if eager is not None and not waits:
        return (eager, *(found or _for_script(diagnosis, folder, ())))
    in_words = find_recommendations(
        verdict.verdict_class,
        verdict.cause,
        verdict.stage,
        verdict.calls,
        verdict.lost_percent or 0.0,
        judged(diagnosis).calibration,
        verdict.overlap_percent,
        is_of_jax=diagnosis.source.is_of_jax,
        is_on_cpu=_is_on_cpu(diagnosis),
    )
    if verdict.is_about_breaks or verdict.is_about_predicts:
        in_words = _about_breaks(verdict)
    found = (*in_words, *found) if found else _for_script(diagnosis, folder, in_words)
    return found if eager is None else _add(found, eager)


def _is_on_cpu(diagnosis: Diagnosis) -> bool:
    breakdown = diagnosis.step_breakdown
    return not (isinstance(breakdown, Unavailable) or has_device_work(breakdown) or diagnosis.source.unseen_device)


def _about_breaks(verdict: Verdict) -> tuple[Suggestion, ...]:
    if not verdict.is_about_breaks:
        return ()
    return (Suggestion(LESS_BETWEEN_EPOCHS.change, LESS_BETWEEN_EPOCHS.why, _gain(verdict.break_percent)),)


def _with_overlap(found: tuple[Suggestion, ...], diagnosis: Diagnosis) -> tuple[Suggestion, ...]:
    """Add the cure of a pipeline that does not overlap with the step, where the model finds that it gains too little to be listed."""
    verdict, calibration = diagnosis.verdict, judged(diagnosis).calibration
    if verdict.cause != InputCause.NO_OVERLAP or any(_adds_prefetch(each) for each in found):
        return found
    return _add(found, _overlap(_left_by_pipeline(verdict.overlap_percent, calibration)))


def _adds_prefetch(suggestion: Suggestion) -> bool:
    return suggestion.change.startswith(("Add prefetch", "End the pipeline with prefetch"))


def _with_iterator_ends(diagnosis: Diagnosis, found: tuple[Suggestion, ...]) -> tuple[Suggestion, ...]:
    """Add what to do about iterators that are made and given up for each epoch, whatever else holds the job back."""
    results, advice = judged(diagnosis), GapCause.ITERATOR_END.recommendation
    assert advice is not None
    if (
        sum_percent(results.iterator_starts, results.iterator_ends) < ENDS_PERCENT
        or _known_one_iterator(found) is not None
    ):
        return found
    if not isinstance(diagnosis.job_steps, Unavailable) and diagnosis.job_steps.own_call is not None:
        return found  # Keras made them, for calls with a batch each
    from pipeline_lab.advice.script.script_run import saved_by_one_iterator  # loads the models of a run's options

    return _add(found, _one_iterator(diagnosis, advice.why, saved_by_one_iterator(diagnosis)))


def _with_predicts(diagnosis: Diagnosis, found: tuple[Suggestion, ...]) -> tuple[Suggestion, ...]:
    """Add what to do about many calls of ``predict``, whatever else holds the job back."""
    job = diagnosis.job_steps
    calls = None if isinstance(job, Unavailable) else job.predicts
    if calls is None or not calls.matter:
        return found
    called = calls.lines[0].call.partition(" at ")[0]
    gain, before, after = round(calls.percent, 1), f"{called}(…)", f"{called}_on_batch(…)"
    return _add(found, Suggestion(calls.change, WITHOUT_PREDICT.why, gain, before=before, after=after))


def _with_evaluations(diagnosis: Diagnosis, found: tuple[Suggestion, ...]) -> tuple[Suggestion, ...]:
    """Add what to do about evaluations: first where they take most of the time, else after what is about the steps, as the verdict is."""
    results = judged(diagnosis)
    percent, evaluation = evaluation_percent(results), results.evaluation
    if percent is None or isinstance(evaluation, Unavailable):
        return found
    place = 0 if percent > MOST_PERCENT else 1
    return (*found[:place], Suggestion(evaluation.change, FEWER_EVALUATIONS.why), *found[place:])


def _with_less_padding(diagnosis: Diagnosis, found: tuple[Suggestion, ...]) -> tuple[Suggestion, ...]:
    """Add what to do about padding in a script: first where the steps are the limit, which compute on it, else after what the verdict is about."""
    padding, folder = diagnosis.padding, RunFolder(Path(diagnosis.source.path))
    if not _is_of_script(folder) or isinstance(padding, Unavailable) or padding.percent < MUCH_PADDING_PERCENT:
        return found
    why = LESS_PADDING.why.format(share=format_percent(padding.percent))
    place = 0 if diagnosis.verdict.verdict_class is VerdictClass.DEVICE_BOUND else 1
    return (*found[:place], Suggestion(LESS_PADDING.change, why, NO_GAIN), *found[place:])


def _with_checkpoints(diagnosis: Diagnosis, found: tuple[Suggestion, ...]) -> tuple[Suggestion, ...]:
    """Put fewer checkpoints first where they take much of the time, unless the verdict is about them."""
    percent, advice = checkpoint_percent(judged(diagnosis)), GapCause.CHECKPOINT.recommendation
    if percent is None or advice is None or diagnosis.verdict.cause == GapCause.CHECKPOINT.value:
        return found
    return (Suggestion(advice.change, advice.why, _gain(percent)), *found)


SMALL_BATCH = 16
"""Examples of a batch up to which more of them are worth a try, where Python between the steps takes much of the time."""


def _with_larger_batch(diagnosis: Diagnosis, found: tuple[Suggestion, ...]) -> tuple[Suggestion, ...]:
    """Add a larger batch to what shortens Python between the steps, where the job's is small."""
    verdict, job = diagnosis.verdict, judged(diagnosis).job_steps
    is_python = verdict.verdict_class is VerdictClass.IDLE_OTHER and verdict.cause == GapCause.PYTHON.value
    if not is_python or verdict.is_about_breaks or isinstance(job, Unavailable) or job.examples_per_second is None:
        return found
    examples = round(job.examples_per_second * job.total_ns / NS_PER_S / job.count)
    if not 0 < examples <= SMALL_BATCH:
        return found
    said = "one example" if examples == 1 else f"{examples} examples"
    return (*found, Suggestion(LARGER_BATCH.change.format(examples=said), LARGER_BATCH.why))


def _with_breaks(diagnosis: Diagnosis, found: tuple[Suggestion, ...]) -> tuple[Suggestion, ...]:
    """Add to what setting up and tearing down iterators takes what else lies between epochs: first where that is what the verdict is about."""
    verdict, advice = diagnosis.verdict, GapCause.ITERATOR_END.recommendation
    assert advice is not None
    if verdict.break_percent < ENDS_PERCENT:
        return found
    known = _known_one_iterator(found)
    if known is not None and known.gain_range_percent is not None:  # the model has counted breaks, too
        one = known
    else:
        from pipeline_lab.advice.script.script_run import saved_by_one_iterator

        why = BREAKS_WHY if known is None else advice.why
        one = _one_iterator(diagnosis, why, saved_by_one_iterator(diagnosis))
    rest = tuple(each for each in found if each is not known)
    if found[:1] == (known,):
        return (one, *rest)
    return (*rest[:1], *_add(rest[1:], one))


def _with_one_iterator_once(found: tuple[Suggestion, ...]) -> tuple[Suggestion, ...]:
    """Let the model's suggestion of one iterator for all epochs stand in place of the same in words."""
    places = [place for place, one in enumerate(found) if _known_one_iterator([one])]
    if len(places) < 2:
        return found
    best = next((one for one in found if one.change in ONE_ITERATOR.values()), found[places[0]])
    rest = tuple(one for place, one in enumerate(found) if place not in places)
    return (*rest[: places[0]], best, *rest[places[0] :])


def _without_repeats(diagnosis: Diagnosis, found: tuple[Suggestion, ...]) -> tuple[Suggestion, ...]:
    """Leave out one iterator for all epochs where the script trains on a ``PyDataset`` or generator, which nobody can repeat."""
    folder = RunFolder(Path(diagnosis.source.path))
    if _known_one_iterator(found) is None or not folder.recipe.is_file():
        return found
    from pipeline_lab.advice.script.script_forecasts import recipe_of  # loads the models of a run's options

    recipe = recipe_of(folder)
    if isinstance(recipe, Unavailable) or recipe.trained is None:
        return found
    read = [
        part
        for call in recipe.upstream(recipe.trained.call)
        for part in call.python
        if part.kind in OF_KERAS or (part.kind == "generator" and not call.is_direct)
    ]
    if not read:
        return found
    rest = tuple(one for one in found if _known_one_iterator([one]) is None)
    job = diagnosis.job_steps
    waits = not isinstance(job, Unavailable) and (job.wait_percent or 0.0) >= MODERATE_PERCENT
    return rest or ((_about_python(read[0]),) if waits else ())


def _of_first_batches(diagnosis: Diagnosis, found: tuple[Suggestion, ...]) -> tuple[Suggestion, ...]:
    """Say what to do where each step has an iterator of its own: the steps get other batches then, so only the author can do it."""
    results, known = judged(diagnosis), _known_one_iterator(found)
    if known is None or not serve_one_step(results.iterator_starts, diagnosis.job_steps):
        return found
    one = Suggestion(FIRST_BATCHES.change, FIRST_BATCHES.why, known.predicted_gain_percent, place=known.place)
    return tuple(one if each is known else each for each in found)


def _about_python(part: PythonPart) -> Suggestion:
    """Say what to do about Python that makes the batches which the steps wait for."""
    advice = InputCause.PYTHON_BOUND.recommendation
    change = PYTHON_CHANGES[part.kind].format(function=part.function)
    return Suggestion(change, advice.why.format(stage="The dataset", python=f" in {part.function}"), NO_GAIN)


def _known_one_iterator(found: Sequence[Suggestion]) -> Suggestion | None:
    """Return the suggestion of one iterator for all epochs, if there is one."""
    advice = GapCause.ITERATOR_END.recommendation
    assert advice is not None
    return next((one for one in found if one.change in (advice.change, *ONE_ITERATOR.values())), None)


def _one_iterator(diagnosis: Diagnosis, why: str, gain: float) -> Suggestion:
    """Advise one iterator for all epochs, where ``fit`` is known with its line."""
    advice = GapCause.ITERATOR_END.recommendation
    assert advice is not None
    one, folder = Suggestion(advice.change, why, round(gain, 1)), RunFolder(Path(diagnosis.source.path))
    if not folder.recipe.is_file():
        return one
    from pipeline_lab.advice.script.script_forecasts import recipe_of
    from pipeline_lab.pipeline.change_words import before_after
    from pipeline_lab.pipeline.rewrites import find_changes

    recipe = recipe_of(folder)
    if isinstance(recipe, Unavailable):
        return one
    change = next((each for each in find_changes(recipe) if each.joins_epochs), None)
    return one if change is None else replace(one, place=change.place, after=before_after(recipe, change)[1])


def _add(found: tuple[Suggestion, ...], one: Suggestion) -> tuple[Suggestion, ...]:
    """Add a suggestion that is not about the verdict's cause: behind those first ones that gain more."""
    own, gains = one.predicted_gain_percent, [each.predicted_gain_percent for each in found]
    is_more = [isinstance(gain, float) and (not isinstance(own, float) or gain > own) for gain in gains]
    place = (*is_more, False).index(False)
    return (*found[:place], one, *found[place:])


def _is_of_script(folder: RunFolder) -> bool:
    """Say whether a run is of a script of the user's own, whose pipeline is known."""
    options = options_of(folder)
    return folder.recipe.is_file() and (isinstance(options, Unavailable) or not options.is_assembled)


def _for_script(diagnosis: Diagnosis, folder: RunFolder, in_words: tuple[Suggestion, ...]) -> tuple[Suggestion, ...]:
    """Return the suggestions for a script of the user's own; those in words where it has no recipe."""
    job = diagnosis.job_steps
    if not isinstance(job, Unavailable) and job.own_call is not None:  # a pipeline that it knows is of something else
        return in_words
    if not _is_of_script(folder):
        return in_words
    from pipeline_lab.advice.script.script_forecasts import measure_script, recipe_of
    from pipeline_lab.advice.script.script_suggestions import ScriptCase, suggest_for_script

    recipe = recipe_of(folder)
    if isinstance(recipe, Unavailable):
        return in_words
    is_eager = _eager(diagnosis) is not None
    case = ScriptCase(measure_script(diagnosis, recipe), recipe, diagnosis.verdict, is_eager)
    return suggest_for_script(case, in_words)


MARKED_STEPS = {
    NO_STEPS: f"with {STEP_MARKS[0]}: train_step(batch)",
    NO_STEPS_OF_JAX: f"with {STEP_MARKS[1]}: state = train_step(state, batch)",
}
"""The line that marks a step, by why there are none: in TensorFlow and in JAX."""
NO_GAIN_KNOWN = Unavailable("What holds the job back is not known yet.")


def _mark_the_steps(diagnosis: Diagnosis) -> tuple[Suggestion, ...]:
    """Return the line that a log without steps lacks, or the rest of a damaged file; the lab's own recordings have the line."""
    folder, steps = RunFolder(Path(diagnosis.source.path)), diagnosis.steps
    if isinstance(steps, Unavailable) and diagnosis.source.salvaged is not None:
        why = "The steps may be in the missing part of the damaged file."
        return (Suggestion("Copy the whole file, or record again.", why, NO_GAIN_KNOWN),)
    is_own = is_run(folder.path) and not folder.opened.is_dir()
    line = MARKED_STEPS.get(steps.reason) if isinstance(steps, Unavailable) and not is_own else None
    if line is None:
        return ()
    why = "Without marks nobody knows where a step begins, and so what it waits for."
    return (Suggestion("Mark each training step, and record a few of them.", why, NO_GAIN_KNOWN, after=line),)


def _eager(diagnosis: Diagnosis) -> Suggestion | None:
    """Return what to do about steps that run op by op; None where they do not."""
    ops = diagnosis.eager_ops
    if isinstance(ops, Unavailable) or not ops.is_eager:
        return None
    why = WITHOUT_FUNCTION.why.format(ops=format_count(ops.ops_per_step))
    suggestion = Suggestion(_into_function(diagnosis.job_steps), why, NO_OP_TIME, side_effects=(ONCE_TRACED,))
    breakdown = diagnosis.step_breakdown
    if isinstance(breakdown, Unavailable) or not breakdown.total_ns:
        return suggestion
    function_ns = ops.ops * IN_FUNCTION_NS + max(0.0, ops.ops_ns - ops.ops * FROM_PYTHON_NS)

    stays_ns = min(ops.paused_ns, breakdown.python_ns)
    between_ns = breakdown.python_ns - stays_ns + breakdown.dispatch_ns
    sure = 100.0 * between_ns / breakdown.total_ns
    gain = max(sure, 100.0 * (between_ns + breakdown.host_compute_ns - function_ns) / breakdown.total_ns)
    bounds = (round(max(0.0, sure - NOT_QUITE_SURE), 1), round(min(99.9, gain + NOT_QUITE_SURE), 1))
    return replace(suggestion, predicted_gain_percent=round(gain, 1), gain_range_percent=bounds)


def _into_function(job: JobSteps | Unavailable) -> str:
    """Say what to put into a function, by its name and line where these are known."""
    steps = () if isinstance(job, Unavailable) else job.eager_steps
    places = [f"{Path(step.file).name}:{step.line}" for step in steps]
    if not steps:
        return WITHOUT_FUNCTION.change
    if switch := steps[0].switch:
        return WITHOUT_SWITCH.format(switch=switch, place=f" ({places[0]})" if steps[0].file else "")
    if not all(step.function for step in steps):
        return INTO_FUNCTION.format(place=" and ".join(places))
    functions = [f"{step.function} ({place})" for step, place in zip(steps, places, strict=True)]
    return DECORATE.format(functions=" and ".join(functions), them="it" if len(functions) == 1 else "each")


IN_FUNCTION_NS, FROM_PYTHON_NS = 5_000.0, 25_000.0
"""What TensorFlow takes to run an op beside its work: inside a function, and called from Python (2.21, a 2.5 GHz core). A small
training step of 232 ops from Python took 30 ms, and 1.7 ms as a function."""
NOT_QUITE_SURE = 5.0
"""Percent of the step by which the gain differed from the estimate."""
NO_OP_TIME = Unavailable("The trace does not tell the launches of ops apart from their own work.")


def _by_model(diagnosis: Diagnosis, folder: RunFolder) -> tuple[Suggestion, ...]:
    options = options_of(folder)
    if isinstance(options, Unavailable):
        return ()
    from pipeline_lab.advice.suggestions import suggest  # logs need none of this
    from pipeline_lab.advice.what_if import measure_diagnosis
    from pipeline_lab.runs.store import name_of

    measured = measure_diagnosis(diagnosis, options)
    return () if isinstance(measured, Unavailable) else suggest(diagnosis, measured, name_of(folder.path))
