"""Record the user's own jobs: a training loop, a script, a job that is already running.

Importing ``ProfileWindows``, for a training job of your own, loads TensorFlow; importing this package does not.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeline_lab.capture.profile_windows import ProfileWindows

__all__ = ["ProfileWindows"]


def __getattr__(name: str) -> Any:
    if name != "ProfileWindows":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pipeline_lab.capture.profile_windows import ProfileWindows

    return ProfileWindows
