"""Time the step alone and the pipeline alone of a watched script, after its last line and without touching its training.

The step is the function that Keras' ``fit`` trained with last, or those that the last step of a loop of the script's own
called, on copies of all their variables and on one batch that is held (:mod:`pipeline_lab.capture.script.own_loops`). The
pipeline is a second iterator over the same dataset, asked for batches as fast as it gives them. Where a step cannot be run
without training further, the run says so.
"""

import inspect
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.eager.polymorphic_function.polymorphic_function import Function

from pipeline_lab.capture.recording import Recording
from pipeline_lab.capture.script import keras_hooks, own_loops
from pipeline_lab.capture.script.own_loops import Call, CannotRunAloneError, OwnStep, prepare_alone
from pipeline_lab.capture.watched_padding import note_padding
from pipeline_lab.runs.run_events import CalibrationEvent
from pipeline_lab.units import NS_PER_S
from pipeline_lab.worker.recipe.notes import note_of

WARM_CALLS, WARM_BATCHES = 3, 3
LEAST_CALLS = 5
MOST_S = 3.0
"""Time for each of the two, at most; a slow one takes at least :data:`LEAST_CALLS`."""
NO_LOOP = "Nothing was timed alone: neither Keras' fit nor a loop that calls functions for its batches was seen."
NO_DATASET = "The pipeline alone was not timed: the script has dropped its dataset."


def may_be_timed(fit: keras_hooks.Fit | None) -> bool:
    """Say whether a fit may be timed although nobody asked for it: reading its data once more must not begin what may not end.

    A generator may wait for what has stopped, as may a source that we do not know; workers would start again. What is
    divided among replicas is no dataset of one step.
    """
    if fit is None or fit.is_fed or not isinstance(fit.dataset, tf.data.Dataset):
        return False
    notes = list(note_of(fit.dataset).upstream())
    return all(note.is_understood and all(part.kind != "generator" for part in note.python) for note in notes)


def calibrate(recording: Recording, most_s: float = MOST_S) -> None:
    """Time both, each for so long, and write them into the run; what cannot be timed is noted there."""
    fit, own = keras_hooks.last_fit(), own_loops.last_step()
    if fit is None and own is None:
        recording.note(NO_LOOP)
        return
    recording.enter("calibrating")
    dataset = fit.dataset if fit is not None else own.dataset if own is not None else None
    pipeline_ns, batches, first_ns, pipeline_cpu_ns = _time_pipeline(dataset, most_s)
    if dataset is None:
        recording.note(NO_DATASET)
    step_ns, steps, step_cpu_ns = None, 0, None
    try:
        if fit is not None:
            step_ns, steps, step_cpu_ns = _time_fit(fit, most_s)
        elif own is not None:
            step_ns, steps, step_cpu_ns = _time_own(own, most_s)
    except CannotRunAloneError as error:
        recording.note(f"The step alone was not timed: {error}, so it cannot be run without training further.")
    except Exception as error:  # models of any kind: what cannot be copied is left alone
        recording.note(f"The step alone was not timed: it does not run again ({type(error).__name__}: {error}).")
    recording.log.write(
        CalibrationEvent(
            device_only_ns=step_ns,
            device_only_steps=steps,
            pipeline_only_ns=pipeline_ns,
            pipeline_only_batches=batches,
            first_batch_ns=first_ns,
            device_only_cpu_ns=step_cpu_ns,
            pipeline_only_cpu_ns=pipeline_cpu_ns,
            of_calls=fit is not None and keras_hooks.steps_of_call(fit.model) == 1,
        )
    )
    try:
        note_padding(recording, dataset)
    except Exception as error:
        recording.note(f"How much of the batches is padding was not counted ({type(error).__name__}: {error}).")


def _time_pipeline(dataset: Any, most_s: float) -> tuple[float | None, int, float | None, float | None]:
    """Return time per batch, number of batches, time to the first one, and processor time per batch, ns.

    Where passes are over within the time, whole ones are timed, with their beginnings: what was made ahead while nobody
    asked would make the rest of a short pass look fast.
    """
    if dataset is None:
        return None, 0, None, None
    begun_ns = time.perf_counter_ns()
    batches = iter(dataset)
    first_ns = 0.0
    for number in range(WARM_BATCHES):
        if next(batches, None) is None:
            return None, 0, first_ns, None
        first_ns = first_ns if number else float(time.perf_counter_ns() - begun_ns)
    times = _repeat(lambda: next(batches, None) is not None, most_s)
    if next(batches, None) is None:
        times = _time_passes(dataset, most_s) or times
    return (None, 0, first_ns, None) if times is None else (times[0], times[1], first_ns, times[2])


def _time_passes(dataset: Any, most_s: float) -> tuple[float, int, float] | None:
    """Time whole passes: time per batch, number of batches, and processor time per batch, ns; None where there are no batches."""
    counts: list[int] = []

    def go_through() -> bool:
        counts.append(sum(1 for _ in dataset))
        return True

    times = _repeat(go_through, most_s, least=1)
    count = sum(counts)
    return (
        None if times is None or not count else (times[0] * len(counts) / count, count, times[2] * len(counts) / count)
    )


def _time_own(step: OwnStep, most_s: float) -> tuple[float, int, float]:
    """Return time per step of a loop of the script's own, number of steps, and processor time per step, ns."""
    return _time_calls(prepare_alone(step.calls, step.dataset), step.of.steps_per_call or 1, most_s)


def _time_fit(fit: keras_hooks.Fit, most_s: float) -> tuple[float, int, float]:
    """Return the same of Keras' ``fit``."""
    calls: list[Call] = [(each, (iter(fit.dataset),), {}) for each in _functions_of(fit.model)]
    alone = prepare_alone(calls, fit.dataset)
    return _time_calls(lambda: [_result_of(each) for each in alone()], keras_hooks.steps_of_call(fit.model), most_s)


def _functions_of(model: Any) -> list[Function]:
    """Return what a model trains with, from below the Python around it; Keras 2 has none around it."""
    if isinstance(of_keras_2 := getattr(model, "train_tf_function", None), Function):
        return [of_keras_2]
    inside = inspect.getclosurevars(inspect.unwrap(model.train_function)).nonlocals.values()
    return [each for each in inside if isinstance(each, Function)]


def _result_of(ran: Any) -> Any:
    """Return what Keras takes from its function after each call."""
    return ran.get_value() if isinstance(ran, tf.experimental.Optional) and ran.has_value() else ran


def _time_calls(run: Callable[[], Any], steps: int, most_s: float) -> tuple[float, int, float]:
    """Return time per step of a call of several steps, number of steps, and processor time per step, ns."""
    for _ in range(WARM_CALLS):
        _wait(run())
    results: list[Any] = []

    def call() -> bool:
        results[:] = [run()]
        return True

    times = _repeat(call, most_s, lambda: _wait(results[0]))
    assert times is not None
    return times[0] / steps, times[1] * steps, times[2] / steps


def _repeat(
    call: Callable[[], bool], most_s: float, settle: Callable[[], None] = lambda: None, least: int = LEAST_CALLS
) -> tuple[float, int, float] | None:
    """Repeat a call until it fails or the time is up; return time, number and processor time of a call, None without any."""
    calls, begun_ns, begun_cpu_ns = 0, time.perf_counter_ns(), time.process_time_ns()
    while calls < least or time.perf_counter_ns() - begun_ns < most_s * NS_PER_S:
        if not call():
            break
        calls += 1
    if not calls:
        return None
    settle()
    return (
        (time.perf_counter_ns() - begun_ns) / calls,
        calls,
        (time.process_time_ns() - begun_cpu_ns) / calls,
    )


def _wait(result: Any) -> None:
    """Wait until a step's result is on the host."""
    for value in tf.nest.flatten(result):
        np.asarray(value)
