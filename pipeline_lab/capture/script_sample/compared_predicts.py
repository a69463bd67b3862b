"""Let a script run, and make its calls of Keras' ``predict`` both ways: are the arrays equal, and what does each take?"""

import contextlib
import functools
import itertools
import statistics
import sys
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from dataclasses import field
from functools import partial
from typing import Any

import numpy as np

from pipeline_lab.capture.script.at_import import after_import
from pipeline_lab.capture.script.job_threads import words_at
from pipeline_lab.capture.script.keras_hooks import is_one_batch
from pipeline_lab.capture.script_sample.leaving import leave_script
from pipeline_lab.capture.script_sample.python_calls import exchanged
from pipeline_lab.data_classes import dataclass
from pipeline_lab.pipeline.predict_samples import ON_BATCH, PREDICT, ComparedCall, PredictRequest
from pipeline_lab.pipeline.recipe import SourcePlace
from pipeline_lab.units import NS_PER_MS, NS_PER_S
from pipeline_lab.worker.note.failures import describe
from pipeline_lab.worker.recipe.places import find_site, write_site

FEWEST = 3
"""Calls after the first one that a median needs."""
SEVERAL = "It is also given more than one batch, or something other than arrays."
DIFFERENT = "predict_on_batch returns different arrays there."
RAISES = "predict fails there for some input."
OF_A_SUBCLASS = "{name} has a predict of its own, which predict_on_batch would pass over."
FAILS = "predict_on_batch fails there ({error})."


@dataclass
class _Calls:
    words: str
    place: SourcePlace
    numbers: "itertools.count[int]" = field(default_factory=itertools.count)
    before_ns: list[int] = field(default_factory=list)
    after_ns: list[int] = field(default_factory=list)
    refusal: str = ""

    def compared(self) -> ComparedCall:
        before, after = map(_median_ms, (self.before_ns, self.after_ns))
        return ComparedCall(self.words, self.place, len(self.after_ns), before, after, self.refusal)


class _Thread(threading.local):
    is_inside = False


class PredictComparison:
    """The calls of one run of a script.

    Attributes:
        counted: Calls of ``predict_on_batch`` that the script made itself.
    """

    def __init__(self, request: PredictRequest) -> None:
        self._request, self.counted = request, 0
        self._calls: dict[Hashable, _Calls] = {}
        self._thread, self._begun_ns = _Thread(), 0

    @property
    def calls(self) -> list[ComparedCall]:
        return [each.compared() for each in self._calls.values() if each.words in self._request.calls]

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        """Let calls be made both ways, or be counted."""
        with contextlib.ExitStack() as stack:
            stack.callback(after_import("keras", lambda: self._watch_keras_3(stack)))
            stack.callback(after_import("tf_keras", lambda: self._watch_keras_2(stack)))
            yield

    def _watch_keras_3(self, stack: contextlib.ExitStack) -> None:
        from keras.src.backend.tensorflow.trainer import TensorFlowTrainer

        self._watch(TensorFlowTrainer, stack)

    def _watch_keras_2(self, stack: contextlib.ExitStack) -> None:
        from tf_keras.src.engine.training import Model

        self._watch(Model, stack)

    def _watch(self, model: Any, stack: contextlib.ExitStack) -> None:
        name, wrap = (ON_BATCH, self._counting) if self._request.counts else (PREDICT, self._comparing)
        stack.enter_context(exchanged(model, name, wrap(getattr(model, name))))

    def _counting(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def predict_on_batch(*arguments: Any, **options: Any) -> Any:
            if self.counted >= self._request.counts or self._is_late():
                leave_script()
            result = original(*arguments, **options)
            self.counted += 1
            return result

        return predict_on_batch

    def _comparing(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def predict(model: Any, *arguments: Any, **options: Any) -> Any:
            site = None if self._thread.is_inside else find_site(sys._getframe())
            if site is None or not site.is_direct:
                return original(model, *arguments, **options)
            if self._has_enough() or self._is_late():
                leave_script()
            if site.key not in self._calls:
                place = write_site(site, "").place
                self._calls[site.key] = _Calls(words_at(place, PREDICT), place)
            self._thread.is_inside = True
            try:
                return self._both_ways(self._calls[site.key], original, model, arguments, options)
            finally:
                self._thread.is_inside = False

        return predict

    def _both_ways(
        self,
        calls: _Calls,
        original: Callable[..., Any],
        model: Any,
        arguments: tuple[Any, ...],
        options: dict[str, Any],
    ) -> Any:
        def as_it_is() -> Any:
            return original(model, *arguments, **options)

        if (name := find_overriding(original.__name__, model)) is not None:
            calls.refusal = calls.refusal or OF_A_SUBCLASS.format(name=name)
        if not is_one_batch(arguments, options):
            calls.refusal = calls.refusal or SEVERAL
        if calls.refusal:
            return as_it_is()
        given = arguments[0] if arguments else options["x"]
        ways = [
            partial(_timed, calls.before_ns, as_it_is),
            partial(_timed, calls.after_ns, lambda: self._on_batch(calls, model, given)),
        ]
        turn = 1 - 2 * (next(calls.numbers) % 2)
        try:
            result, other = [way() for way in ways[::turn]][::turn]
        except Exception:
            calls.refusal = RAISES
            raise
        if not calls.refusal and not _are_equal(result, other):
            calls.refusal = DIFFERENT
        return result

    def _on_batch(self, calls: _Calls, model: Any, given: Any) -> Any:
        try:
            return model.predict_on_batch(given)
        except Exception as error:  # the script goes on as it is
            calls.refusal = FAILS.format(error=describe(error))
            return None

    def _has_enough(self) -> bool:
        done = {each.words for each in self._calls.values() if len(each.after_ns) >= self._request.each or each.refusal}
        return done.issuperset(self._request.calls)

    def _is_late(self) -> bool:
        self._begun_ns = self._begun_ns or time.perf_counter_ns()
        return time.perf_counter_ns() - self._begun_ns > self._request.seconds * NS_PER_S


def _timed(took_ns: list[int], call: Callable[[], Any]) -> Any:
    begun_ns = time.perf_counter_ns()
    result = call()
    took_ns.append(time.perf_counter_ns() - begun_ns)
    return result


def find_overriding(method: str, model: Any) -> str | None:
    """Return the name of a class outside of Keras that has the method itself, among all of Keras' models; None without one."""
    base = next(kind for kind in reversed(type(model).__mro__) if method in vars(kind))
    kinds = [base]
    for kind in kinds:
        kinds += kind.__subclasses__()
        if method in vars(kind) and not kind.__module__.startswith(("keras.", "tf_keras.")):
            return kind.__name__
    return None


def _median_ms(took_ns: list[int]) -> float | None:
    return statistics.median(took_ns[1:]) / NS_PER_MS if len(took_ns) > FEWEST else None


def _are_equal(one: Any, other: Any) -> bool:
    """Say whether two results have the same structure and hold the same arrays, bit for bit."""
    if isinstance(one, dict):
        return (
            isinstance(other, dict)
            and list(one) == list(other)
            and all(_are_equal(one[key], other[key]) for key in one)
        )
    if isinstance(one, (list, tuple)):
        return type(one) is type(other) and len(one) == len(other) and all(map(_are_equal, one, other))
    left, right = np.asarray(one), np.asarray(other)
    if type(one) is not type(other) or left.dtype != right.dtype or left.shape != right.shape:
        return False
    return np.array_equal(left, right) if left.dtype.hasobject else left.tobytes() == right.tobytes()
