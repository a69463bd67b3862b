"""Let a script train a few steps, and note what Keras logs of them."""

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from pipeline_lab.capture.script.at_import import after_import
from pipeline_lab.capture.script_sample.leaving import leave_script
from pipeline_lab.capture.script_sample.python_calls import exchanged
from pipeline_lab.capture.script_sample.sample_reader import line_of
from pipeline_lab.pipeline.first_steps import StepsRequest, TrainedSteps
from pipeline_lab.pipeline.recipe import LOOP

if TYPE_CHECKING:
    from pipeline_lab.worker.recipe.notes import UseKey
    from pipeline_lab.worker.recipe.places import CallSite


class CountedSteps:
    """The first steps of one run of a script, which ends with them.

    Args:
        request: What is wanted.
    """

    def __init__(self, request: StepsRequest) -> None:
        self._request, self._count, self._has_begun = request, 0, False
        self._logs: dict[str, float] = {}

    @property
    def trained(self) -> TrainedSteps:
        return TrainedSteps(self._count, self._logs)

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        """Count the steps of Keras' ``fit``, or those of a loop at the place where the dataset is read."""
        from pipeline_lab.worker.recipe import wrapping

        with contextlib.ExitStack() as stack:
            if self._request.reading.role == LOOP:
                self._watch_loop(stack)
            else:
                wrapping.readers.append(self._note)
                stack.callback(wrapping.readers.remove, self._note)
                stack.callback(after_import("keras", lambda: self._watch_keras_3(stack)))
                stack.callback(after_import("tf_keras", lambda: self._watch_keras_2(stack)))
            yield

    def _note(self, _dataset: Any, key: "UseKey", site: "CallSite | None") -> None:
        """Begin to count where the dataset is about to be read: other calls of ``fit`` may have come before."""
        place = self._request.reading
        self._has_begun |= key.role == place.role and line_of(site, key.role) == (place.file, place.line)

    def _watch_keras_3(self, stack: contextlib.ExitStack) -> None:
        from keras.src.callbacks.callback_list import CallbackList

        self._watch_fit(CallbackList, stack)

    def _watch_keras_2(self, stack: contextlib.ExitStack) -> None:
        from tf_keras.src.callbacks import CallbackList

        self._watch_fit(CallbackList, stack)

    def _watch_fit(self, callbacks: Any, stack: contextlib.ExitStack) -> None:
        name = "on_train_batch_end"
        stack.enter_context(exchanged(callbacks, name, self._noting_logs(getattr(callbacks, name))))

    def _noting_logs(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def on_train_batch_end(callbacks: Any, batch: int, logs: Any = None) -> Any:
            if not self._has_begun:
                return original(callbacks, batch, logs)
            self._count += 1
            self._logs = {str(name): float(value) for name, value in (logs or {}).items() if _is_number(value)}
            if self._count >= self._request.steps:
                leave_script()
            return original(callbacks, batch, logs)

        return on_train_batch_end

    def _watch_loop(self, stack: contextlib.ExitStack) -> None:
        from tensorflow.python.data.ops.iterator_ops import OwnedIterator

        original, place = OwnedIterator.__next__, self._request.reading

        @functools.wraps(original)
        def take(iterator: Any) -> Any:
            frame = sys._getframe(1)
            is_here = (frame.f_code.co_filename, frame.f_lineno) == (place.file, place.line)
            if is_here and self._count >= self._request.steps:
                leave_script()
            element = original(iterator)
            self._count += is_here
            return element

        stack.enter_context(exchanged(OwnedIterator, "__next__", take))


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
