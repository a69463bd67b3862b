"""Which op each op's event is of."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline_lab.analysis import event_names
from pipeline_lab.analysis.tf_data.kinds import Role
from pipeline_lab.analysis.tf_data.threads import IndexArray, Threads


@dataclass(frozen=True, eq=False)
class OperationTypes:
    """The types of ops in a trace.

    Attributes:
        names: ``DecodeJpeg``, ``PyFunc``, …
        of_name: Of every event name of the host the index of its op's type, 0 for other names, shape (n_names,).
    """

    names: tuple[str, ...]
    of_name: IndexArray


def find_types(threads: Threads, names: Sequence[str]) -> OperationTypes:
    """Tell the ops of a trace apart by their type.

    Args:
        threads: The trace's events.
        names: The event names of the host's plane.
    """
    types: dict[str, int] = {}
    of_name = np.zeros(len(names), np.int32)
    for name in np.unique(threads.name[threads.rows(Role.OPERATION)]).tolist():
        of_name[name] = types.setdefault(event_names.operation(names[name]) or names[name], len(types))
    return OperationTypes(tuple(types), of_name)
