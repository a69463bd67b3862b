"""Whether the user's job uses TensorFlow's devices yet.

Before that, a script may still choose its devices, set memory growth or fork. The profiler's start would initialize CUDA,
which a forked process cannot use and which settles some of these choices.
"""

import contextlib
import functools
import sys
from collections.abc import Callable
from typing import Any

_sessions = False


def note_new_sessions() -> None:
    """Notice sessions of TensorFlow 1, which use devices without an eager context; a second call does nothing."""
    from tensorflow.python.client.session import BaseSession

    create = BaseSession.__init__
    if hasattr(create, "notes_for_pipeline_lab"):
        return

    @functools.wraps(create)
    def create_and_note(self: Any, *arguments: Any, **options: Any) -> None:
        global _sessions
        create(self, *arguments, **options)
        _sessions = True

    create_and_note.notes_for_pipeline_lab = True  # type: ignore[attr-defined]  # a mark on a function
    BaseSession.__init__ = create_and_note


def are_devices_in_use() -> bool:
    """Say whether the job has made TensorFlow initialize its devices; does not initialize any itself."""
    context = sys.modules.get("tensorflow.python.eager.context")
    found = None if context is None else context.context_safe()
    return _sessions or bool(getattr(found, "_initialized", False))  # there is no public way to ask


class UsedDevice:
    """Tells which device TensorFlow uses, once the job has made it initialize its devices.

    Args:
        describe: Takes an addition to the environment of the run.
    """

    def __init__(self, describe: Callable[[dict[str, Any]], None]) -> None:
        self._describe, self._is_known = describe, False

    def look(self) -> bool:
        """Say whether devices are in use; the first time, describe the one that the job uses."""
        if self._is_known:
            return True
        if not are_devices_in_use():
            return False
        from pipeline_lab.worker.prepare.device import present_device  # loads TensorFlow, as the job has

        self._is_known = True
        with contextlib.suppress(Exception):  # a device that tells nothing of itself must not affect the job
            self._describe(present_device().describe())
        return True
