"""The functions of the features workload: read a caption, and look up the vector of its image.

The tables lie beside the files: ``vectors.npy``, or ``vectors-00000-of-00004.npy`` and so on, rows by image.
"""

from pipeline_lab.pipeline.workload_source import WorkloadSource
from pipeline_lab.stages.code import Code, wanted
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.read import PerFile, read_lines
from pipeline_lab.workloads.features import FeaturesWorkload

_PARSE = '''
def parse(record: tf.Tensor) -> dict[str, tf.Tensor]:
    """Read one caption."""
    return tf.io.parse_single_example(record, FEATURES)
'''

_PARSE_BATCH = '''
def parse(records: tf.Tensor) -> dict[str, tf.Tensor]:
    """Read a batch of captions."""
    return tf.io.parse_example(records, FEATURES)
'''

_MAPPED = '''
def look_up_in(files: list[str]) -> Callable[[dict[str, tf.Tensor]], dict[str, tf.Tensor]]:
    """Map the table that lies beside the files into memory; Python reads the rows that are asked for from disk."""
    table = np.load(os.path.join(os.path.dirname(files[0]), "vectors.npy"), mmap_mode="r")

    def read_rows(image: np.ndarray) -> np.ndarray:
        return np.asarray(table[image])

    def look_up(example: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        vector = tf.numpy_function(read_rows, [example["image"]], tf.float32)
        return {**example, "vector": tf.ensure_shape(vector, [*example["image"].shape, VECTOR_SIZE])}

    return look_up
'''

_CONSTANT = '''
def look_up_in(files: list[str]) -> Callable[[dict[str, tf.Tensor]], dict[str, tf.Tensor]]:
    """Open the table that lies beside the files; it becomes a constant in the graph of the pipeline."""
    table = np.load(os.path.join(os.path.dirname(files[0]), "vectors.npy"), mmap_mode="r")

    def look_up(example: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        return {**example, "vector": tf.gather(table, example["image"])}

    return look_up
'''

_LOAD = '''
@functools.cache
def load_table(path: str) -> tf.Variable:
    """Load a table into a variable, once, however often the pipeline is built."""
    with tf.device("/CPU:0"):
        return tf.Variable(np.load(path, mmap_mode="r"), trainable=False)
'''

_VARIABLE = '''
def look_up_in(files: list[str]) -> Callable[[dict[str, tf.Tensor]], dict[str, tf.Tensor]]:
    """Look up in the table that lies beside the files."""
    table = load_table(os.path.join(os.path.dirname(files[0]), "vectors.npy"))

    def look_up(example: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        return {**example, "vector": tf.gather(table, example["image"])}

    return look_up
'''

_SHARDED = '''
def look_up_in(files: list[str]) -> Callable[[dict[str, tf.Tensor]], dict[str, tf.Tensor]]:
    """Look up in the parts of the table that lie beside the files; the rows go on from part to part."""
    names = sorted(tf.io.gfile.glob(os.path.join(os.path.dirname(files[0]), "vectors-*.npy")))
    parts = [load_table(name) for name in names]

    def look_up(example: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        return {**example, "vector": tf.nn.embedding_lookup(parts, example["image"])}

    return look_up
'''

_LOOK_UP = {"lookup": _MAPPED, "constant": _CONSTANT, "variable": _VARIABLE, "sharded": _SHARDED}


def features_source(workload: FeaturesWorkload, pipeline: PipelineOptions) -> WorkloadSource:
    """Write ``parse``, and what looks vectors up where the pipeline does."""
    is_replicated, looks_up = workload.layout == "replicated", pipeline.find("lookup") is not None
    what = "vector" if is_replicated or looks_up else "image"
    constants = {
        f"CAPTION_WORDS = {workload.caption_words}": True,
        f"VECTOR_SIZE = {workload.vector_size}": is_replicated or (looks_up and workload.layout == "lookup"),
        "FEATURES = {": True,
        '    "caption": tf.io.FixedLenFeature([CAPTION_WORDS], tf.int64),': True,
        '    "vector": tf.io.FixedLenFeature([VECTOR_SIZE], tf.float32),': is_replicated,
        '    "image": tf.io.FixedLenFeature([], tf.int64),': not is_replicated,
        '    "label": tf.io.FixedLenFeature([], tf.int64),': True,
        '    "id": tf.io.FixedLenFeature([], tf.int64),': True,
        "}": True,
    }
    parse = _PARSE_BATCH if pipeline.is_vectorised("parse") else _PARSE
    loads = looks_up and workload.layout in ("variable", "sharded")
    functions = [parse, *([_LOAD] if loads else []), *([_LOOK_UP[workload.layout]] if looks_up else [])]
    imports = {
        "import functools": loads,
        "import os": looks_up,
        "from collections.abc import Callable": looks_up,
        "import numpy as np": looks_up,
    }
    return WorkloadSource(
        about=(
            f'Elements are batches of {{"caption", "{what}", "label", "id"}}; label 1: the caption fits its image.',
        ),
        code=Code(wanted(imports), wanted(constants), tuple(text.strip() for text in functions)),
        written={"read": lambda read: read_lines(read, PerFile.PLAIN)},
        functions={"lookup": "look_up_in(files)"},
    )
