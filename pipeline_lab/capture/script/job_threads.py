"""Where each thread of a watched script is, and who is told what happens there; what all hooks share."""

import functools
import linecache
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Hashable
from types import FrameType
from typing import Any

from pipeline_lab.capture.script.step_notes import Note, Pass, Role
from pipeline_lab.data_classes import dataclass
from pipeline_lab.pipeline.recipe import SourcePlace
from pipeline_lab.worker.recipe.notes import TrainedSteps
from pipeline_lab.worker.recipe.places import find_site, write_site

Take = Callable[[Note], None]
Key = tuple[Any, ...]
"""The Python values that a function is given: for each of them TensorFlow traces it anew."""

listeners: list[Take] = []
installed = threading.Lock()
MARK = "notes_for_pipeline_lab"
KERAS = frozenset({Role.FIT, Role.EVALUATE})
"""Here batches are noted as calls of Keras' functions; `predict` asks for each from Python."""
trained: set[Hashable] = set()
"""Streams of passes in whose steps gradients were taken."""
now_ns = time.perf_counter_ns
os.register_at_fork(after_in_child=listeners.clear)


class Here(threading.local):
    """Where a thread is.

    Attributes:
        role: Of the Keras call that it is in; None outside.
        of: The pass that it took its last batch from.
        asked_ns: When it asked for that.
        epoch: The pass that Keras makes.
        model: That Keras fits.
        fit: Calls of ``fit`` so far.
        is_nested: It is inside a hook already, or in a method of Keras that runs one step on a batch.
        is_saving: It writes a checkpoint.
        own: The pass whose batches the script makes itself.
        other: Place of the last step since then that was none of its steps.
        begun_ns: When the method of Keras began that runs such a step; 0 outside of one.
        returned_ns: When the last step of that ended.
        beside, beside_ns: Calls of other functions since then, and how long they took.
        eager: The loop that takes gradients in Python on batches that the script makes itself.
        eager_ns: When it last did.
        taken: The places where gradients have been taken since then.
        mark: What marks the step under way in profiles.
        functions: Those that have been called and have not returned, each with the Python values among its arguments, the outermost first.
        read: Counts of the datasets that have been read since the outermost was called.
    """

    role: Role | None = None
    of: Pass | None = None
    asked_ns = 0
    epoch: Pass | None = None
    model: "weakref.ref[Any] | None" = None
    fit = 0
    is_nested = is_saving = False
    own: Pass | None = None
    other: Hashable = None
    begun_ns = returned_ns = beside = beside_ns = 0
    eager: Pass | None = None
    eager_ns = 0
    taken: frozenset[Hashable] = frozenset()
    mark: Any = None
    functions: tuple[tuple[Any, Key], ...] = ()
    read: frozenset[TrainedSteps] = frozenset()


here = Here()


@dataclass
class Anywhere:
    """Where the job is, whatever the thread: gradients may be taken on threads of a strategy.

    Attributes:
        of: The pass of the last batch.
        functions: Those that a thread has called last, as :attr:`Here.functions`.
    """

    of: Pass | None = None
    functions: tuple[tuple[Any, Key], ...] = ()


anywhere = Anywhere()


def tell(note: Note) -> None:
    """Pass a note to all listeners."""
    for take in listeners:
        take(note)


def under_way() -> Pass | None:
    """Return the pass that this thread, else any other, took its last batch of; None where it is over."""
    of = here.of or anywhere.of
    return None if of is None or of.is_over else of


def is_hooked(owner: Any, name: str) -> bool:
    """Say whether a method is wrapped."""
    return hasattr(getattr(owner, name, None), MARK)


def replace_method(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    """Wrap a method, once."""
    original = getattr(owner, "__dict__", {}).get(name, getattr(owner, name, None))
    if original is None or is_hooked(owner, name):
        return
    wrapper = functools.wraps(original)(make(original))
    setattr(wrapper, MARK, True)
    setattr(owner, name, wrapper)


def place_of_loop() -> Hashable:
    """Return the calls of the script's own code that led here."""
    frame: FrameType | None = sys._getframe(2)
    calls = []
    while frame is not None:
        name = frame.f_code.co_filename
        if not any(part in name for part in _FOREIGN):
            calls.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return tuple(calls)


OF_KERAS = ("/keras/", "/tf_keras/")
_FOREIGN = ("/tensorflow/", *OF_KERAS, "/pipeline_lab/")


def words_of_call(name: str) -> str:
    """Name the script's call that led here, and its place: ``train_step at train.py:40``; what has a name of its own by that."""
    site = find_site(sys._getframe())
    if site is None:
        return name
    if site.key not in _words:
        _words[site.key] = words_at(write_site(site, "").place, name)
    return _words[site.key]


_words: dict[Hashable, str] = {}


def words_at(place: SourcePlace, name: str) -> str:
    """Name the call at a place of the script: ``model.predict at train.py:40``."""
    text = linecache.getline(place.file, place.line).encode()[place.column or 0 :].decode(errors="replace")
    called = text.partition("(")[0].strip()
    is_plain = place.column is not None and called != "super" and called.replace(".", "_").isidentifier()
    return f"{called if is_plain else name} at {place}"
