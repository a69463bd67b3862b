"""Which Python functions hold the device up: those that the training thread calls between its calls to the framework.

The Python tracer names a call ``$file.py:line function``, and one of a built-in ``$time sleep``. JAX's profiler has it on unless told
otherwise, TensorFlow's off.
"""

import re
from collections.abc import Sequence

import numpy as np

from pipeline_lab.analysis.activity.activity import Activity
from pipeline_lab.analysis.activity.intervals import intersect, length_within, outermost, total
from pipeline_lab.analysis.causes import GapCause
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.declaring.declaration import Analysis, Document, PerTrace, only_derived, to_ms
from pipeline_lab.analysis.idle.gap_causes import attribute
from pipeline_lab.analysis.steps.recorded_steps import Steps
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import TraceIncompleteError

_CALL = re.compile(r"\$(?P<file>.+\.py):(?P<line>\d+) (?P<function>.+)")
MOST_FUNCTIONS = 10
NO_PYTHON = (
    "Which Python functions ran is not known: the Python tracer was off, or wrote none between the calls to the framework; record with "
    "python_tracer_level=1."
)


@dataclass(frozen=True)
class PythonFunction:
    """A function and the idle time in it, what it calls included.

    Attributes:
        name, file, line: Where it is defined; the file without its folder.
        idle_ns: Time of the recorded steps in which the device idles meanwhile.
    """

    name: str
    file: str
    line: int
    idle_ns: int

    @property
    def place(self) -> str:
        """What sentences call it."""
        return f"{self.name} ({self.file}:{self.line})"


@dataclass(frozen=True)
class IdlePython:
    """Idle time of the recorded steps in Python, by function.

    Attributes:
        steps_ns: Length of the steps of the windows in which Python was traced.
        total_ns: All idle time of theirs in Python.
        functions: Those that the training thread calls itself, the longest first, :data:`MOST_FUNCTIONS` at most.
    """

    steps_ns: int
    total_ns: int
    functions: tuple[PythonFunction, ...]


def find_idle_python(activity: Activity, steps: Steps) -> IdlePython:
    """Find the functions of one trace.

    A function that makes a call to the framework itself, such as the loop, is passed over for those that it calls.

    Args:
        activity: The trace.
        steps: Its own steps, not yet placed on a common axis.

    Raises:
        TraceIncompleteError: The trace holds none.
    """
    line, host = activity.training_line, activity.host
    if line is None or host is None:
        raise TraceIncompleteError(NO_PYTHON)
    is_function = host.name_mask(lambda name: _CALL.fullmatch(name) is not None)
    if not is_function.any():  # as in most traces, whose lines are long
        raise TraceIncompleteError(NO_PYTHON)
    rows = line.rows_named(is_function)
    spans, calls = np.stack((line.start_ns[rows], line.end_ns[rows]), axis=1), activity.framework_calls
    between = np.flatnonzero(np.searchsorted(calls, spans[:, 1]) == np.searchsorted(calls, spans[:, 0]))
    outer = between[outermost(spans[between, 0], spans[between, 1])]
    if not len(outer):
        raise TraceIncompleteError(NO_PYTHON)
    spans_of_steps = tables.intervals(steps.table)
    idle = intersect(attribute(activity, activity.busy).causes[GapCause.PYTHON], spans_of_steps)
    idle_ns = np.bincount(line.name_index[rows[outer]], length_within(idle, spans[outer]), len(host.names))
    longest = np.argsort(-idle_ns, kind="stable")[:MOST_FUNCTIONS]
    functions = tuple(_function(host.names[index], int(idle_ns[index])) for index in longest if idle_ns[index])
    return IdlePython(total(spans_of_steps), total(idle), functions)


def _function(name: str, idle_ns: int) -> PythonFunction:
    found = _CALL.fullmatch(name)
    assert found is not None
    return PythonFunction(found["function"], found["file"], int(found["line"]), idle_ns)


def merge_idle_python(parts: Sequence[IdlePython]) -> IdlePython:
    """Add up several traces."""
    lengths: dict[tuple[str, str, int], int] = {}
    for function in (function for part in parts for function in part.functions):
        key = function.name, function.file, function.line
        lengths[key] = lengths.get(key, 0) + function.idle_ns
    longest = sorted(lengths.items(), key=lambda item: -item[1])[:MOST_FUNCTIONS]
    functions = tuple(PythonFunction(*key, idle_ns) for key, idle_ns in longest)
    return IdlePython(sum(part.steps_ns for part in parts), sum(part.total_ns for part in parts), functions)


def _to_json(found: IdlePython) -> Document:
    return {
        "steps_ms": to_ms(found.steps_ns),
        "total_ms": to_ms(found.total_ns),
        "functions": [
            {"function": each.name, "file": each.file, "line": each.line, "idle_ms": to_ms(each.idle_ns)}
            for each in found.functions
        ],
    }


IDLE_PYTHON = Analysis(
    IdlePython,
    per_trace=PerTrace(
        lambda trace: find_idle_python(trace.activity, trace.found.need(Steps, "steps")),
        merge_idle_python,
        only_derived("what Python did between the calls to the framework is"),
    ),
    to_json=_to_json,
)
