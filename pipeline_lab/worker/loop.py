"""Who calls the training steps: a loop of our own, from Python or inside a graph, or Keras' ``fit``."""

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from pipeline_lab.worker.course import Course
from pipeline_lab.worker.steps import Steps

Follow = Callable[[Any], None]
"""Told the iterator over the pipeline as soon as there is one."""


class Loop(Protocol):
    """Trains on a pipeline until the course is over or the data ends."""

    def run(self, dataset: Any, follow: Follow) -> None: ...


class OwnLoop:
    """Calls the steps itself.

    Args:
        course: What surrounds each call.
        steps: What a call is.
    """

    def __init__(self, course: Course, steps: Steps) -> None:
        self._course, self._steps = course, steps

    def run(self, dataset: Any, follow: Follow) -> None:
        batches: Iterator[Any] = iter(dataset)
        follow(batches)
        while most := self._course.next_steps(self._steps.per_call):
            with self._course.mark():
                taken = self._steps.take(batches, most)
                self._course.record(taken)
            self._course.finish_call(taken)
            if len(taken) < most:
                self._course.end_of_data()
                return
