"""Pipeline Lab: why a TensorFlow job waits for its input, what to change, and whether the change worked."""

from pipeline_lab.api import analyze, compare, explain, open_trace, race, run, tune
from pipeline_lab.version import __version__ as __version__

__all__ = ["analyze", "compare", "explain", "open_trace", "race", "run", "tune"]
