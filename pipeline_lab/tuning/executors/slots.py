"""Which trials a cluster measures at the same time: one on each machine, or one on each share of a machine's GPUs."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Node:
    """A machine of a cluster with what it has to give."""

    node_id: str
    cpus: float
    gpus: float


@dataclass(frozen=True)
class Slot:
    """Where one trial is measured at a time.

    Attributes:
        node_id: The machine.
        number, of: Which of how many shares of it.
        cpus, gpus: What the share holds.
    """

    node_id: str
    number: int
    of: int
    cpus: float
    gpus: float


def find_slots(nodes: Sequence[Node], gpus_per_trial: int | None) -> list[Slot]:
    """Divide machines up.

    Args:
        nodes: All machines.
        gpus_per_trial: GPUs that a trial is given, with as large a share of the machine's cores; machines that have fewer
            measure nothing. None for whole machines, which is also what machines are where none has a GPU.
    """
    if gpus_per_trial is None or not any(node.gpus for node in nodes):
        return [Slot(node.node_id, 0, 1, node.cpus, node.gpus) for node in nodes]
    return [
        Slot(node.node_id, number, shares, float(node.cpus // shares), float(gpus_per_trial))
        for node in nodes
        for shares in [int(min(node.gpus // gpus_per_trial, max(1.0, node.cpus)))]
        for number in range(shares)
    ]


def share_of(cores: Sequence[int], number: int, of: int) -> list[int]:
    """Return the cores of one share, neighbours all; what cannot be divided is left idle."""
    each = len(cores) // of
    return sorted(cores)[number * each : (number + 1) * each] if each else sorted(cores)
