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
        of_row: Of every op's row the index of its type, 0 for other rows, shape (n_rows,).
    """

    names: tuple[str, ...]
    of_row: IndexArray


def find_types(threads: Threads, names: Sequence[str]) -> OperationTypes:
    """Tell the ops of a trace apart by their type.

    Args:
        threads: The trace's events.
        names: The event names of the host's plane.
    """
    rows = threads.rows(Role.OPERATION)
    types: dict[str, int] = {}
    code = np.zeros(len(names), np.int32)
    for name in np.unique(threads.name[rows]).tolist():
        code[name] = types.setdefault(event_names.operation(names[name]) or names[name], len(types))
    of_row = np.zeros(threads.count, np.int32)
    of_row[rows] = code[threads.name[rows]]
    return OperationTypes(tuple(types), of_row)
