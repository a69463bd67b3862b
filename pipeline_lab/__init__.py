"""Pipeline Lab: why a TensorFlow job waits for its input, what to change, and whether the change worked."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeline_lab.advice.advising import analyze
    from pipeline_lab.capture.explain import explain
    from pipeline_lab.comparison.opening import compare
    from pipeline_lab.comparison.racing import race
    from pipeline_lab.runs.run import run
    from pipeline_lab.trace.sources import open_trace
    from pipeline_lab.tuning.tune import tune

__version__ = "0.1.0"
"""The only place that states it: the wheel, `--version`, run records and the app take it from here."""

__all__ = ["analyze", "compare", "explain", "open_trace", "race", "run", "tune"]

_HOMES = {
    "analyze": ("pipeline_lab.advice.advising", "analyze"),
    "compare": ("pipeline_lab.comparison.opening", "compare"),
    "explain": ("pipeline_lab.capture.explain", "explain"),
    "open_trace": ("pipeline_lab.trace.sources", "open_trace"),
    "race": ("pipeline_lab.comparison.racing", "race"),
    "run": ("pipeline_lab.runs.run", "run"),
    "tune": ("pipeline_lab.tuning.tune", "tune"),
}
"""Where each public name lives; loaded when it is asked for, so that ``import pipeline_lab`` stays quick."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _HOMES[name]
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
