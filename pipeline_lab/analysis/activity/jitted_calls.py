"""The rhythm of a job in JAX that marks no steps: from one call of its training step to the next."""

import numpy as np

from pipeline_lab.analysis.activity import event_names
from pipeline_lab.analysis.activity.intervals import IntArray
from pipeline_lab.analysis.activity.launches import Launches
from pipeline_lab.trace.schema import Line, Plane


def find_step_calls(host: Plane, line: Line, launches: Launches) -> tuple[str, IntArray]:
    """Return the jitted function that is the training step, and when each of its calls began and ended, shape (n, 2), ns.

    Of several functions that are called more than once it is the one whose launches keep the devices busy longest; where none
    were recorded, as on a CPU, the one whose calls take longest.

    Args:
        host: The plane that holds the thread.
        line: The thread that trains.
        launches: Of the trace.

    Returns:
        An empty name and no calls where no function is called twice.
    """
    is_call = host.name_mask(lambda name: name.startswith(event_names.JAX_CALL))
    rows = np.flatnonzero(is_call[line.name_index])
    rows = rows[np.lexsort((-line.duration_ns[rows], line.start_ns[rows]))]  # the outer of two comes first
    spans = np.stack((line.start_ns[rows], line.start_ns[rows] + line.duration_ns[rows]), axis=1)
    outer = np.append(rows[:1] >= 0, spans[1:, 0] >= np.maximum.accumulate(spans[:, 1])[:-1])
    name, spans = line.name_index[rows[outer]], spans[outer]
    weight_ns = launches.worked_within(spans) if launches.is_seen.any() else spans[:, 1] - spans[:, 0]
    count, total_ns = np.bincount(name, minlength=len(host.names)), np.bincount(name, weight_ns, len(host.names))
    total_ns[count <= 1] = -1.0
    step = int(np.argmax(total_ns))
    return ("", spans[:0]) if count[step] <= 1 else (host.names[step], spans[name == step])
