"""Record jobs that are not ours: their training loop, their script, a job that runs already.

``ProfileWindows`` is for a training job of your own; importing it loads TensorFlow, importing this package does not.
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
