"""A dataset of the script made again on numbers in place of data: which file and which record each of its examples is.

The order of examples does not depend on what they hold. So each source becomes the numbers of its files and records, maps are left
out, and what orders, repeats and batches is made again as it was written; TensorFlow itself then draws the order, without
reading or decoding anything but to count the records. What goes by values (a filter, a generator, groups) cannot be told that way.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import PipelineLabError
from pipeline_lab.runs.run_documents import DataFile
from pipeline_lab.worker.recipe.notes import MADE_BY, Note, note_of
from pipeline_lab.worker.recipe.wrapping import datasets_in

COUNTING_S = 20.0
"""Time to count the records of all files."""
READERS: dict[str, Callable[..., Any]] = {
    "TFRecordDataset": tf.data.TFRecordDataset,
    "TextLineDataset": tf.data.TextLineDataset,
}
_AS_THEY_COME = frozenset({"map", "prefetch", "with_options", "cache", "ignore_errors", "assert_cardinality", "apply"})
"""Calls that hand on what they take, one for one and in its order."""
_AGAIN: dict[str, tuple[str, ...]] = {
    "shuffle": ("buffer_size", "seed", "reshuffle_each_iteration"),
    "repeat": ("count",),
    "take": ("count",),
    "skip": ("count",),
    "shard": ("num_shards", "index"),
    "batch": ("batch_size", "drop_remainder"),
    "padded_batch": ("batch_size", "drop_remainder"),
    "unbatch": (),
}
"""Calls that are made again, with these of their arguments."""


class CannotNumberError(PipelineLabError):
    """The order of a dataset's examples cannot be told without their values."""


@dataclass(frozen=True, eq=False)
class Numbered:
    """A dataset on numbers.

    Attributes:
        dataset: Gives, for each example, its file and its record, shape (…, 2).
        files: That the numbers stand for; a source that is no file is one.
    """

    dataset: Any
    files: Sequence[DataFile]

    def batches(self) -> Iterator[Any]:
        """Yield file and record of the examples of each batch, shape (n, 2), in one pass."""
        for element in self.dataset:
            yield np.asarray(element).reshape(-1, 2)


def number_dataset(dataset: Any) -> Numbered:
    """Make a dataset again on numbers.

    Args:
        dataset: Of the script, noted.

    Raises:
        CannotNumberError: One of its calls goes by values, or is not known.
    """
    numbering = _Numbering()
    made = numbering.make(dataset)
    return Numbered(made, numbering.files())


@dataclass
class _Numbering:
    _paths: list[str] = field(default_factory=list)
    _records: list[int] = field(default_factory=list)

    def files(self) -> list[DataFile]:
        return [
            DataFile(path, records, Path(path).stat().st_size if Path(path).is_file() else 0)
            for path, records in zip(self._paths, self._records, strict=True)
        ]

    def make(self, dataset: Any) -> Any:
        note, made_by = note_of(dataset), vars(dataset).get(MADE_BY)
        if note.method == "from_tensor_slices":
            return self._slices(note, dataset)
        if made_by is None:
            raise CannotNumberError(f"how {_words(note)} was made is not kept")
        given = dict(made_by.signature.bind_partial(*made_by.arguments, **made_by.options).arguments)
        inputs = [below for value in given.values() for below in datasets_in(value)]
        if note.method in READERS:
            return self._records_of(note, given, inputs)
        if not inputs:
            return self._source(note, given)
        if note.method in _AS_THEY_COME or note.method == "zip":  # of a zip, the first input tells
            return self.make(inputs[0])
        if note.method == "concatenate":
            return self.make(inputs[0]).concatenate(self.make(inputs[1]))
        if note.method in ("interleave", "flat_map"):
            return self._opened(note, given, self.make(inputs[0]))
        if note.method not in _AGAIN:
            raise CannotNumberError(f"{_words(note)} goes by values, or in a way that is not known")
        method = note.method.removeprefix("padded_")
        return getattr(self.make(inputs[0]), method)(**{key: given[key] for key in _AGAIN[note.method] if key in given})

    def _source(self, note: Note, given: dict[str, Any]) -> Any:
        if note.method == "list_files":
            found = self._add(_matching(given["file_pattern"]))
            listed = tf.data.Dataset.from_tensor_slices(found)
            is_mixed = given.get("shuffle") in (None, True)
            return listed.shuffle(max(1, len(found)), seed=given.get("seed")) if is_mixed else listed
        if note.method == "range":
            bounds = [int(each) for each in given.get("args", ())]
            return self._array(note, len(range(*bounds)))
        raise CannotNumberError(f"{_words(note)} is made by Python, or in a way that is not known")

    def _slices(self, note: Note, dataset: Any) -> Any:
        """Number what slices of tensors are: files, where some of them are their paths, else one array."""
        parts = getattr(dataset, "_tensors", None)  # the dataset holds the data itself, which its note does not
        if not parts:
            raise CannotNumberError(f"what {_words(note)} was given is not kept")
        paths = next((paths for part in parts if part.dtype == tf.string and (paths := _as_paths(part.numpy()))), None)
        if paths is not None:
            return tf.data.Dataset.from_tensor_slices(self._add(paths))
        return self._array(note, int(parts[0].shape[0]))

    def _array(self, note: Note, count: int) -> Any:
        self._paths.append(_words(note))
        self._records.append(count)
        number = len(self._paths) - 1
        return tf.data.Dataset.range(count).map(lambda record: tf.stack([tf.constant(number, tf.int64), record]))

    def _add(self, paths: Sequence[str]) -> Any:
        """Add files; return file and record of each, as if it were one record, shape (files, 2)."""
        first = len(self._paths)
        self._paths += paths
        self._records += [1] * len(paths)
        numbers = np.arange(first, first + len(paths), dtype=np.int64)
        return np.stack([numbers, np.zeros_like(numbers)], axis=1)

    def _records_of(self, note: Note, given: dict[str, Any], inputs: Sequence[Any]) -> Any:
        paths = given.get("filenames")
        named = (
            self.make(inputs[0])
            if inputs
            else tf.data.Dataset.from_tensor_slices(self._add(_names(np.atleast_1d(np.asarray(paths)))))
        )
        self._count(READERS[note.method], given.get("compression_type"))
        at_once = given.get("num_parallel_reads")
        opened = self._opener(())
        return named.flat_map(opened) if at_once is None else _interleaved(named, opened, at_once)

    def _opened(self, note: Note, given: dict[str, Any], named: Any) -> Any:
        """Make again what opens a file for each element."""
        inner, kept = note.inner, []
        while inner is not None and inner.method not in READERS:
            if inner.method in ("skip", "take"):
                kept.append((inner.method, int(inner.arguments["count"])))
            elif inner.method not in _AS_THEY_COME:
                raise CannotNumberError(
                    f"{_words(inner)} inside of {_words(note)} goes by values, or in a way that is not known"
                )
            inner = next(iter(inner.inputs), None)
        if inner is None:
            raise CannotNumberError(f"what {_words(note)} opens for each element is not known")
        self._count(READERS[inner.method], inner.arguments.get("compression_type"))
        opened = self._opener(tuple(reversed(kept)))
        if note.method == "flat_map":
            return named.flat_map(opened)
        wanted = ("cycle_length", "block_length", "num_parallel_calls", "deterministic")
        return named.interleave(opened, **{key: given[key] for key in wanted if key in given})

    def _opener(self, kept: Sequence[tuple[str, int]]) -> Callable[[Any], Any]:
        counts = self._records
        for method, count in kept:
            counts[:] = [max(0, each - count) if method == "skip" else min(each, count) for each in counts]
        known = tf.constant(counts, tf.int64)

        def opened(pair: Any) -> Any:
            return tf.data.Dataset.range(known[pair[0]]).map(lambda record: tf.stack([pair[0], record]))

        return opened

    def _count(self, reader: Callable[..., Any], compression: Any) -> None:
        """Count the records of all files; one reader of a script reads them all."""
        until_s = time.monotonic() + COUNTING_S
        zero = np.int64(0)
        for number, path in enumerate(self._paths):
            if time.monotonic() > until_s:
                raise CannotNumberError(f"counting the records of {len(self._paths):,} files takes too long")
            self._records[number] = int(reader(path, compression).reduce(zero, lambda count, _: count + 1))


def _interleaved(named: Any, opened: Callable[[Any], Any], at_once: Any) -> Any:
    """Return what a reader does that reads several files in turn."""
    return named.interleave(opened, cycle_length=at_once, num_parallel_calls=at_once)


def _matching(pattern: Any) -> list[str]:
    patterns = _names(np.atleast_1d(np.asarray(pattern)))
    return [path for each in patterns for path in sorted(tf.io.gfile.glob(each))]


def _as_paths(part: Any) -> list[str] | None:
    """Return texts that name files; None of anything else."""
    if part.ndim != 1 or part.dtype.kind not in "OSU" or not len(part):
        return None
    names = _names(part[[0, -1]])
    return _names(part) if all(Path(name).is_file() for name in names) else None


def _names(values: Any) -> list[str]:
    return [value.decode(errors="replace") if isinstance(value, bytes) else str(value) for value in values.tolist()]


def _words(note: Note) -> str:
    from pipeline_lab.worker.recipe.places import write_site

    if note.site is None:
        return f".{note.method}(…)"
    written = write_site(note.site, note.method)
    return f"{written.place} {written.text or note.method}"
