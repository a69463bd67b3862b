"""Lines of ``make_dataset`` that open the files.

Three things may surround each file's records: a set time per record (synthetic workload), the sample probe (user's
records, which carry no id of their own), or nothing; generators take the place of files, or the folders of classes. With something around it, a file is opened by a function, and
reading modes become the `flat_map` or `interleave` that ``TFRecordDataset`` itself stands for.
"""

from collections.abc import Sequence
from enum import Enum

from pipeline_lab.options.read_stage import ReadStage
from pipeline_lab.pipeline.code import INDENT, Code, assign_call, number_or_autotune, parallel_arguments


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
