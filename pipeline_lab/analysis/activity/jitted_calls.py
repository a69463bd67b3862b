"""The rhythm of a job in JAX that marks no steps: from one call of its training step to the next."""

import numpy as np

from pipeline_lab.analysis.activity import event_names
from pipeline_lab.analysis.activity.intervals import IntArray, outermost
from pipeline_lab.analysis.activity.launches import Launches
from pipeline_lab.trace.schema import Line, Plane

LARGE = 0.25
"""Part of the longest function's time from which on a function may be the training step."""


def find_step_calls(host: Plane, line: Line, launches: Launches) -> tuple[str, IntArray]:
    """Return the jitted function that is the training step, and when each of its calls began and ended, shape (n, 2), ns.

    Of several functions that are called more than once it is, of those that keep the devices busy long, the one that is called most often:
    an evaluation may take longer, and a split of random numbers may come as often. Where no work of theirs was recorded, as on a CPU, calls
    count by their own length. The first call may compile, so its length does not count.

    Args:
        host: The plane that holds the thread.
        line: The thread that trains.
        launches: Of the trace.

    Returns:
        An empty name and no calls where no function is called twice.
    """
    is_call = host.name_mask(lambda name: name.startswith(event_names.JAX_CALL))
    rows = line.rows_named(is_call)
    rows = rows[outermost(line.start_ns[rows], line.end_ns[rows])]
    name, spans = line.name_index[rows], np.stack((line.start_ns[rows], line.end_ns[rows]), axis=1)
    worked_ns = launches.worked_within(spans)
    weight_ns = worked_ns if worked_ns.any() else spans[:, 1] - spans[:, 0]
    found = {index: weight_ns[name == index] for index in np.unique(name).tolist()}
    usual_ns = {index: len(each) * float(np.median(each[1:])) for index, each in found.items() if len(each) > 1}
    if not usual_ns:
        return "", spans[:0]
    large = [index for index in usual_ns if usual_ns[index] >= LARGE * max(usual_ns.values())]
    step = max(large, key=lambda index: (len(found[index]), usual_ns[index]))
    return host.names[step], spans[name == step]
