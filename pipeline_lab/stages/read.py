"""The first stage: how the files are opened, and in what order their records come.

Three things may surround each file's records: a set time per record (synthetic workload), the sample probe (a user's
records, which carry no id of their own), or nothing; generators take the place of files, or the folders of classes. With
something around it, a file is opened by a function, and reading modes become the `flat_map` or `interleave` that
``TFRecordDataset`` itself stands for.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from pipeline_lab.fields import Parallelism
from pipeline_lab.stages.code import INDENT, Code, assign_call, number_or_autotune, parallel_arguments
from pipeline_lab.stages.stage import OneForOne
from pipeline_lab.stages.stage_values import Amount, Host, Position, Reading, Remark, Running, Weight, Writing
from pipeline_lab.statistics.reading_steps import OrderStep, ReadFiles, SampleFiles
from pipeline_lab.units import format_count

AHEAD_PER_FILE = 9
"""Records that a parallel interleave holds for each open file (seen with TensorFlow 2.21)."""


_IN_ORDER = ("sequential", "flat_map", "map")
_FILE_BY_FILE = (*_IN_ORDER, "interleave", "parallel_reads")


class ReadStage(OneForOne):
    """Open the files and yield their records."""

    stage: Literal["read"] = "read"
    mode: Literal["sequential", "flat_map", "map", "parallel_reads", "interleave", "sample"] = "sequential"
    """``sequential``: one file after the other, ``TFRecordDataset(files)``; ``flat_map``: the same, a dataset for each
    file; ``map``: the same, as a dataset of datasets that is flattened; ``parallel_reads``:
    ``TFRecordDataset(num_parallel_reads=…)``; ``sample``: each record from a file drawn at random
    (``sample_from_datasets``)."""
    shuffle_files: bool = False
    """Visit the files in a new random order each epoch."""
    cycle_length: Annotated[int, Field(ge=1, le=1024)] | None = None
    """interleave: files open at once; None leaves it to tf.data."""
    block_length: int = Field(1, ge=1, le=1_000_000)
    """interleave: records taken from one file before the next."""
    num_parallel_calls: Parallelism = None
    """interleave and parallel_reads: files read at the same time."""
    deterministic: bool | None = None
    """interleave: keep the order even if a later file is ready first; None leaves it to the global option."""
    weights: Literal["size", "uniform"] = "size"
    """sample: draw files by their length in bytes, or all equally often."""
    num_shards: int = Field(1, ge=1, le=10_000)
    """Read only every n-th file, as one of n jobs does; 1 reads all."""
    shard_index: int = Field(0, ge=0, le=9_999)
    """Which of the shards, counted from 0."""

    methods: ClassVar[frozenset[str]] = frozenset({"TFRecordDataset", "interleave", "sample_from_datasets"})
    iterators: ClassVar[frozenset[str]] = frozenset()
    once: ClassVar[bool] = True
    shown_with: ClassVar = {
        "cycle_length": ("mode", ("interleave",)),
        "block_length": ("mode", ("interleave",)),
        "deterministic": ("mode", ("interleave",)),
        "num_parallel_calls": ("mode", ("interleave", "parallel_reads")),
        "weights": ("mode", ("sample",)),
        "shuffle_files": ("mode", _FILE_BY_FILE),
        "num_shards": ("mode", _FILE_BY_FILE),
        "shard_index": ("mode", _FILE_BY_FILE),
    }

    @model_validator(mode="after")
    def _fields_fit_mode(self) -> "ReadStage":
        if self.mode != "interleave":
            for name in ("cycle_length", "block_length", "deterministic"):
                if getattr(self, name) != type(self).model_fields[name].default:
                    raise ValueError(f"{name} only applies to mode = interleave, not to {self.mode}; remove it")
        if self.mode != "sample" and self.weights != "size":
            raise ValueError(f"weights only applies to mode = sample, not to {self.mode}; remove it")
        if self.mode not in ("parallel_reads", "interleave") and self.num_parallel_calls is not None:
            raise ValueError(f"mode = {self.mode} has no num_parallel_calls; choose parallel_reads or interleave")
        if self.mode == "sample" and self.shuffle_files:
            raise ValueError("mode = sample draws from all files at once, so shuffle_files changes nothing; remove it")
        if self.mode == "parallel_reads" and self.num_parallel_calls is None:
            raise ValueError("parallel_reads needs num_parallel_calls: a number or autotune")
        if self.shard_index >= self.num_shards:
            raise ValueError(
                f"shard_index {self.shard_index} is out of range for {self.num_shards} shards; the first is 0"
            )
        if self.mode == "sample" and self.num_shards > 1:
            raise ValueError("mode = sample draws from all files; remove num_shards, or put a shard stage after it")
        return self

    @property
    def is_in_order(self) -> bool:
        """Say whether one file is read after the other."""
        return self.mode in _IN_ORDER

    @property
    def is_dividable(self) -> bool:
        return self.mode != "sample"

    @property
    def mixes(self) -> str | None:
        return "shuffle_files" if self.shuffle_files else "sampling" if self.mode == "sample" else None

    def amount(self, before: Amount, size: int, file_sizes: Sequence[int]) -> Amount:
        records = sum(self.own_files(file_sizes))
        return Amount(records, records)

    def own_files(self, file_sizes: Sequence[int]) -> Sequence[int]:
        """Return the records of each file of its shard."""
        return file_sizes[self.shard_index :: self.num_shards]

    def sizes_in_order(self, file_sizes: Sequence[int]) -> Sequence[int] | None:
        return self.own_files(file_sizes) if self.is_in_order else None

    def can_share_files(self, file_sizes: Sequence[int], shards: int) -> bool:
        return self.num_shards == 1 and len(file_sizes) >= shards > 1

    @property
    def leaves_out(self) -> bool:
        return self.num_shards > 1

    def lines(self, writing: Writing) -> Iterable[str]:
        assert writing.written is not None, "the workload knows what surrounds the records of a file"
        return writing.written

    def order(self, reading: Reading) -> Iterable[OrderStep]:
        if self.is_in_order:
            return [ReadFiles(1, 1, self.shuffle_files, self.num_shards, self.shard_index)]
        if self.mode == "sample":
            return [SampleFiles(None if self.weights == "size" else (1.0,) * reading.files)]
        cycle = self.cycle_length or self._default_cycle(reading.cores)
        return [ReadFiles(cycle, self.block_length, self.shuffle_files, self.num_shards, self.shard_index)]

    def _default_cycle(self, cores: int) -> int:
        """Return how many files tf.data opens at once on its own (found by experiment with TensorFlow 2.21)."""
        if self.num_parallel_calls is None:
            return cores
        if self.num_parallel_calls == "autotune":
            return -(-cores // 3)
        return self.num_parallel_calls

    def running(self, host: Host) -> Running:
        if self.num_parallel_calls is None:
            return Running()
        opened = self.cycle_length or (
            self.num_parallel_calls
            if self.mode == "parallel_reads" and isinstance(self.num_parallel_calls, int)
            else None
        )
        opened = opened or max(1, int(host.cores))
        calls = min(host.calls(self.num_parallel_calls), float(opened))
        return Running(calls, works_ahead=True, held_examples=float(opened) * AHEAD_PER_FILE, uses_pool=True)

    def with_calls(self, calls: int, files: int | None) -> Mapping[str, Any] | None:
        if self.mode == "sample" or files == 1:
            return None
        at_once = calls if files is None else min(calls, files)
        return {"num_parallel_calls": at_once, "mode": "interleave", "cycle_length": at_once}

    def remarks(self, place: Position) -> Iterator[Remark]:
        sizes = place.file_sizes
        is_by_size = self.mode == "sample" and self.weights == "size"
        if sizes is not None and not self.is_in_order and not is_by_size:
            buffered = max((stage.buffered or 0 for stage in place.stages), default=0)
            if max(sizes) > 1.5 * min(sizes) and buffered < sum(sizes) / 2:
                yield place.remark(
                    "unequal-files",
                    Weight.ADVICE,
                    f"The files hold from {format_count(min(sizes))} to {format_count(max(sizes))} examples, but all that are "
                    "open are read equally fast: small ones run out early and the last batches come from the largest alone; "
                    "a shuffle buffer that covers the data mixes them by size.",
                )
        yield from self._refused(place)

    def _refused(self, place: Position) -> Iterator[Remark]:
        """Say that tf.data will refuse an interleave (found by experiment with TensorFlow 2.21)."""
        if self.mode != "interleave" or not isinstance(self.num_parallel_calls, int):
            return
        calls, opened = self.num_parallel_calls, self.cycle_length or os.cpu_count() or 1
        if calls > opened:
            why = "" if self.cycle_length else " cycle_length is not set, so that is one for each core of this machine;"
            yield place.remark(
                "interleave-refused",
                Weight.PROBLEM,
                f"tf.data refuses to read {format_count(calls)} files in parallel where {format_count(opened)} are open at a "
                f"time, and the job fails;{why} set cycle_length to {calls} or more.",
            )


class PerFile(Enum):
    """What surrounds the records of one file."""

    PLAIN = "tf.data.TFRecordDataset"
    SLOW = "lambda file: tf.data.TFRecordDataset(file).map(read_slowly)"
    PROBED = "read_file"
    GENERATED = "open_generator"
    FOLDER = "open_folder"


_EACH = {
    PerFile.PLAIN: "[tf.data.TFRecordDataset(file) for file in files]",
    PerFile.SLOW: "[tf.data.TFRecordDataset(file).map(read_slowly) for file in files]",
    PerFile.PROBED: "[read_file(index, file) for index, file in enumerate(files)]",
    PerFile.FOLDER: "[open_folder(label, folder) for label, folder in enumerate(files)]",
}
"""A list with a dataset for each file."""


_READ_FILE = '''
def read_file(file_index: tf.Tensor, file: tf.Tensor) -> tf.data.Dataset:
    """Read one file and number its records, so that each example's origin is known later on."""
    first = file_index * 2**40
    numbers = tf.data.Dataset.range(first, first + 2**40)
    return tf.data.Dataset.zip({"record": tf.data.TFRecordDataset(file), "id": numbers})
'''


_NUMBERED = (PerFile.PROBED, PerFile.FOLDER)
"""What opens a file by its number and its path."""

_SIZES = {PerFile.FOLDER: "[len(tf.io.gfile.listdir(folder)) for folder in files]"}
_SIZES_IN_BYTES = "[tf.io.gfile.stat(file).length for file in files]"

_OPEN_FOLDER = """
def open_folder(label: tf.Tensor, folder: tf.Tensor) -> tf.data.Dataset:
    \"\"\"List the files of one class in the order of their names; each is read when it is parsed.\"\"\"
    paths = tf.io.matching_files([tf.strings.join([folder, ending]) for ending in ENDINGS])
    label = tf.cast(label, tf.int64)
    return tf.data.Dataset.from_tensor_slices(paths).enumerate().map(
        lambda number, path: {"path": path, "label": label, "id": label * 2**40 + number}
    )
"""


def folder_code(endings: Sequence[str]) -> Code:
    """Write what opens a folder of a class.

    Args:
        endings: Of the names of its files, such as ``.wav``.
    """
    names = ", ".join(f'"/*{ending}"' for ending in endings)
    return Code(constants=(f"ENDINGS = [{names}]",), functions=(_OPEN_FOLDER.strip(),))


def read_code(per_file: PerFile) -> Code:
    return Code(functions=(_READ_FILE.strip(),)) if per_file is PerFile.PROBED else Code()


def read_lines(stage: ReadStage, per_file: PerFile) -> list[str]:
    """Write the reading stage.

    Args:
        stage: How the files are visited.
        per_file: What surrounds the records of one file.
    """
    if stage.mode == "sample":
        return _sample(stage, per_file)
    if stage.mode == "interleave":
        return [*_file_dataset(stage, per_file), _interleave(stage, per_file)]
    if stage.mode == "map":
        datasets = assign_call("dataset.map", [per_file.value], "a dataset of datasets")
        return [*_file_dataset(stage, per_file), datasets, assign_call("dataset.flat_map", ["lambda records: records"])]
    if stage.mode == "flat_map" or (stage.mode == "sequential" and per_file is not PerFile.PLAIN):
        return [*_file_dataset(stage, per_file), assign_call("dataset.flat_map", [per_file.value])]
    if per_file is PerFile.PLAIN:
        return _record_dataset(stage)
    return [*_file_dataset(stage, per_file), _parallel_reads(stage, per_file)]


def _sample(stage: ReadStage, per_file: PerFile) -> list[str]:
    arguments = [_EACH[per_file], "rerandomize_each_iteration=True"]
    if stage.weights == "uniform":
        return [assign_call("tf.data.Dataset.sample_from_datasets", arguments)]
    arguments.insert(1, "weights=[size / sum(sizes) for size in sizes]")
    return [
        f"{INDENT}sizes = {_SIZES.get(per_file, _SIZES_IN_BYTES)}",
        assign_call("tf.data.Dataset.sample_from_datasets", arguments),
    ]


def _file_dataset(stage: ReadStage, per_file: PerFile) -> list[str]:
    if per_file is PerFile.GENERATED:
        count, what, lines = "len(EXAMPLES)", "generators", [assign_call("tf.data.Dataset.range", ["len(EXAMPLES)"])]
    else:
        count, what, lines = "len(files)", "files", [assign_call("tf.data.Dataset.from_tensor_slices", ["files"])]
    if per_file in _NUMBERED:
        lines.append(assign_call("dataset.enumerate", []))
    if stage.num_shards > 1:
        arguments = [str(stage.num_shards), str(stage.shard_index)]
        lines.append(assign_call("dataset.shard", arguments, f"one in {stage.num_shards} {what}"))
    if stage.shuffle_files:
        lines.append(assign_call("dataset.shuffle", [count], f"a new order of {what} each epoch"))
    return lines


def _record_dataset(stage: ReadStage) -> list[str]:
    parallel = (
        [f"num_parallel_reads={number_or_autotune(stage.num_parallel_calls)}"] if stage.num_parallel_calls else []
    )
    if not stage.shuffle_files and stage.num_shards == 1:
        return [assign_call("tf.data.TFRecordDataset", ["files", *parallel])]
    return [
        *_file_dataset(stage, PerFile.PLAIN),
        assign_call("tf.data.TFRecordDataset", ["dataset", *parallel]),
    ]


def _interleave(stage: ReadStage, per_file: PerFile) -> str:
    arguments = [per_file.value]
    if stage.cycle_length is not None:
        arguments.append(f"cycle_length={stage.cycle_length}")
    if stage.block_length != 1:
        arguments.append(f"block_length={stage.block_length}")
    arguments += parallel_arguments(stage.num_parallel_calls, stage.deterministic)
    return assign_call("dataset.interleave", arguments)


def _parallel_reads(stage: ReadStage, per_file: PerFile) -> str:
    """Write what ``num_parallel_reads`` means: an interleave over that many files, in a fixed order."""
    assert stage.num_parallel_calls is not None
    calls = parallel_arguments(stage.num_parallel_calls)
    cycle = [] if stage.num_parallel_calls == "autotune" else [f"cycle_length={stage.num_parallel_calls}"]
    return assign_call("dataset.interleave", [per_file.value, *cycle, *calls])
