"""What a stage's calls say about it: its dataset, its settings, its buffer.

Read from every call, or from evenly chosen ones of a stage with very many: decoding stats costs more than all the rest.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from math import prod

import numpy as np

from pipeline_lab.analysis.activity.intervals import IntArray
from pipeline_lab.analysis.tf_data.tf_data import StageOrigin
from pipeline_lab.analysis.tf_data.threads import Threads
from pipeline_lab.data_classes import dataclass
from pipeline_lab.units import BYTES_PER_MB

SAMPLED_CALLS = 500
"""Calls of one stage in one trace whose stats are read."""
NOT_TOLD = -1
NUMBERS = (
    "id",
    "buffered_elements",
    "buffer_limit",
    "buffer_size",
    "parallelism",
    "cycle_length",
    "threadpool_size",
    "cpu_budget",
    "ram_budget_megabytes",
)
RAM_USAGE = "ram_usage_megabytes"
TEXTS = ("name", "types", "shapes", "autotune", "deterministic", RAM_USAGE)
"""What is read of a call."""

_CREATION_NUMBER = re.compile(r":\d+")
_SHAPE = re.compile(r"\[([\d,]{0,100})\]")  # more digits than any shape has would pass what a float can hold
_BYTES = {
    **dict.fromkeys(("bool", "int8", "uint8"), 1),
    **dict.fromkeys(("int16", "uint16", "half", "bfloat16"), 2),
    **dict.fromkeys(("int32", "uint32", "float"), 4),
    **dict.fromkeys(("int64", "uint64", "double", "complex64"), 8),
}
_RAM = re.compile(r"(\d{1,12}) out of (\d+)")


@dataclass(frozen=True, eq=False)
class CallStats:
    """The stats of some calls of all stages; read once for all of them, since a look takes longer than what it finds.

    Attributes:
        threads: Where the calls come from.
        rows: Their rows, ascending, shape (n,).
        ends: The rows of the first and the last call of each stage, whose texts are read.
    """

    threads: Threads
    rows: IntArray
    ends: IntArray

    def ints(self, stat: str) -> IntArray:
        """Return a stat of every call, one of :data:`NUMBERS`, ``NOT_TOLD`` where there is none, shape (n,)."""
        return self._numbers[stat]

    def text(self, row: int, stat: str) -> str:
        """Return a stat of the first or the last call of a stage, one of :data:`TEXTS`; empty if it has none."""
        return self._texts[stat][row]

    @cached_property
    def _numbers(self) -> dict[str, IntArray]:
        told = zip(NUMBERS, self.threads.each_ints(self.rows, NUMBERS), strict=True)
        return {stat: np.where(known, values, NOT_TOLD) for stat, (values, known) in told}

    @cached_property
    def _texts(self) -> dict[str, dict[int, str]]:
        rows, told = self.ends.tolist(), self.threads.each_texts(self.ends, TEXTS)
        return {stat: dict(zip(rows, texts, strict=True)) for stat, texts in zip(TEXTS, told, strict=True)}


@dataclass(frozen=True, eq=False)
class Calls:
    """Those of one stage, in the order of time.

    Attributes:
        stats: The stats of all stages' calls.
        at: Where its own ones lie among them, shape (n,).
    """

    stats: CallStats
    at: IntArray

    @property
    def start_ns(self) -> IntArray:
        return self.stats.threads.start_ns[self.stats.rows[self.at]]

    @property
    def ram_used_bytes(self) -> IntArray:
        """Memory of the machine in use at each call, ``NOT_TOLD`` where it did not tell, shape (n,).

        Calls of roots tell it, in MB: ``4431 out of 25276 (17.53%)`` (``root_dataset.cc``: what is not free of all that there is).
        """
        if not (self.text(RAM_USAGE) or self.text(RAM_USAGE, of_first=True)):
            return np.full(len(self.at), NOT_TOLD, np.int64)
        found = map(_RAM.match, self.stats.threads.texts(self.stats.rows[self.at], RAM_USAGE))
        return np.array([int(match[1]) * BYTES_PER_MB if match else NOT_TOLD for match in found], np.int64)

    def ints(self, stat: str) -> IntArray:
        """Return a stat of every call, ``NOT_TOLD`` where there is none, shape (n,)."""
        return self.stats.ints(stat)[self.at]

    def last(self, stat: str) -> int | None:
        """Return the last value that was recorded, or None."""
        values = self.ints(stat)
        told = values[values != NOT_TOLD]
        return int(told[-1]) if len(told) else None

    def text(self, stat: str, *, of_first: bool = False) -> str:
        """Return a stat of the last call, or of the first one, as text; empty if it has none."""
        if not len(self.at):
            return ""
        return self.stats.text(int(self.stats.rows[self.at[0 if of_first else -1]]), stat)

    def claim(self, stat: str) -> bool | None:
        """Return a truth value of the last call, or None."""
        return {"true": True, "1": True, "false": False, "0": False}.get(self.text(stat).lower())


def sample_calls(threads: Threads, rows_by_stage: Sequence[IntArray]) -> list[Calls]:
    """Choose the calls of each stage whose stats are read: all of them, or every n-th, the last one among them."""
    chosen = [rows[_evenly(len(rows))] for rows in rows_by_stage]
    in_time = [rows[np.argsort(threads.start_ns[rows], kind="stable")] for rows in chosen]
    ends = [rows[[0, -1]] for rows in in_time if len(rows)]
    none = np.empty(0, np.int64)
    stats = CallStats(threads, np.sort(np.concatenate([none, *chosen])), np.unique(np.concatenate([none, *ends])))
    return [Calls(stats, np.searchsorted(stats.rows, rows)) for rows in in_time]


def _evenly(count: int) -> IntArray:
    return np.linspace(0, count - 1, min(count, SAMPLED_CALLS)).astype(np.int64)


def dataset_name(calls: Calls) -> str:
    """Name the dataset behind a stage; empty if its calls do not tell."""
    return common_dataset((calls.text("name"), calls.text("name", of_first=True)))


def common_dataset(names: Iterable[str]) -> str:
    """Return the one name, or what the names have in common: the kind of dataset without its number."""
    known = [name for name in names if name]
    if len(set(known)) <= 1:
        return known[0] if known else ""
    return _CREATION_NUMBER.sub("", known[0])


def origin_of(name: str, dataset: str) -> StageOrigin:
    """Say how a stage came to be, from the kind of its iterator and the name of its dataset."""
    if dataset.startswith("inject/"):
        return StageOrigin.INJECTED
    if dataset.startswith("fused("):
        return StageOrigin.FUSED
    is_made_parallel = name.startswith("Parallel") and dataset and "Parallel" not in dataset
    return StageOrigin.PARALLELISED if is_made_parallel else StageOrigin.WRITTEN


def element_bytes(calls: Calls) -> float | None:
    """Return the size of the stage's elements from their types and shapes; None if these leave anything open."""
    types, shapes = calls.text("types").split(), calls.text("shapes").split()
    if not types or len(types) != len(shapes):
        return None
    sizes = [_tensor_bytes(kind, shape) for kind, shape in zip(types, shapes, strict=True)]
    return None if None in sizes else float(sum(size for size in sizes if size is not None))


def _tensor_bytes(kind: str, shape: str) -> int | None:
    known = _SHAPE.fullmatch(shape)
    if known is None or kind not in _BYTES:
        return None
    return prod(int(size) for size in known[1].split(",") if size) * _BYTES[kind]
