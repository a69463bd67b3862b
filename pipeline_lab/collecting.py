"""How often Python looks for cycles: what is loaded has none that matter, and a collection looks at all of it."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

BETWEEN_COLLECTIONS = 200_000
"""Objects that a command may make: it makes many that last and few cycles. With Python's 700, looking for those takes a
twentieth of a short command. To read a log takes half as many, so it never looks."""
USUAL = gc.get_threshold()


def collect_rarely() -> None:
    """Let a process that is over soon look for cycles only if it makes very many objects."""
    gc.set_threshold(BETWEEN_COLLECTIONS)


def collect_as_usual() -> None:
    """Let a process that stays, as the app does, look for what its visitors leave behind."""
    gc.set_threshold(*USUAL)


@contextmanager
def loading() -> Iterator[None]:
    """Keep what is loaded meanwhile out of collections: as TensorFlow loads those take 0.7 s in all, and 0.2 s each later."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
