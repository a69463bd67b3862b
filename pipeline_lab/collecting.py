"""When Python collects garbage: a collection visits all that is loaded, of which nothing is ever freed."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

BETWEEN_COLLECTIONS = 200_000
"""Objects between two collections of a command, which makes many that last and few cycles. With Python's 700, collections
take a twentieth of a short command. Reading a log makes half as many, so it never collects."""
USUAL = gc.get_threshold()


def collect_rarely() -> None:
    """Let a process that ends soon, or that does nothing but analyze, collect garbage only if it makes very many objects.

    What is made while a trace is analyzed is in no cycle, so it is freed without a collection.
    """
    gc.set_threshold(BETWEEN_COLLECTIONS)


def collect_as_usual() -> None:
    """Let a process that lasts, as the app does, free what its visitors leave behind."""
    gc.set_threshold(*USUAL)


@contextmanager
def loading() -> Iterator[None]:
    """Load without collections, and exclude what was loaded from later ones: with TensorFlow 0.7 s in all, then 0.2 s each."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
