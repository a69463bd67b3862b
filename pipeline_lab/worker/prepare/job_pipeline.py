"""The pipeline of a job, rendered from stages or from the user's module; its files, its datasets and its graph as written."""

import contextlib
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

import tensorflow as tf

from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import DataError, UserCodeError
from pipeline_lab.pipeline.source import needs_probe
from pipeline_lab.runs.machine.limits import core_numbers
from pipeline_lab.runs.run_documents import DataFile, WrittenPipeline, WrittenStage
from pipeline_lab.worker.job_context import Job
from pipeline_lab.worker.note.failures import explaining_errors, explaining_hard_exits, report_failure
from pipeline_lab.worker.prepare.user_code import UserPipeline, import_pipeline, open_user_code, source_to_run
from pipeline_lab.worker.workloads.data_and_step import count_in_views, prepare_files
from pipeline_lab.workloads.module import ModuleWorkload


class Pipeline(Protocol):
    """Builds a job's datasets."""

    def make_dataset(self, files: list[str], cache_dir: str, /) -> Any: ...


@contextlib.contextmanager
def open_pipeline(job: Job) -> Iterator[Pipeline]:
    """Import the run's ``pipeline.py``; while the block runs, errors of a user's module are explained as such.

    Raises:
        UserCodeError: The user's module failed, inside the block or at its opening.
    """
    workload = job.options.workload
    if not isinstance(workload, ModuleWorkload):
        rendered: Any = import_pipeline(source_to_run(job.folder))
        yield rendered
        return

    def report(error: UserCodeError) -> None:
        report_failure(job.folder, job.log, error)

    with explaining_hard_exits(job.stop.request):
        own = open_user_code(job.folder.source, workload, report)
        own.check_loop(job.options.training)
        try:
            with explaining_errors(own.home, own.maker):
                yield own
        finally:
            own.first_batch.rest()  # the job has ended


def find_files(job: Job, pipeline: Pipeline) -> list[DataFile]:
    """Return the files that the job reads; those of generated workloads are created on first use.

    Raises:
        DataError, UserCodeError: They are missing or damaged, or do not fit on disk.
        StopRequestedError: The job was stopped meanwhile.
    """
    if isinstance(pipeline, UserPipeline):
        return pipeline.files
    workload = job.options.workload
    assert not isinstance(workload, ModuleWorkload)
    return count_in_views(prepare_files(workload, job.log, job.stop), job.options.pipeline.views)


@dataclass(frozen=True)
class JobData:
    """Builds the datasets for training, calibration and evaluation, each with a separate cache.

    Attributes:
        job: The job.
        pipeline: Builds them.
        paths: All files, held-out files last.

    Raises:
        DataError: No file is left to train on.
    """

    job: Job
    pipeline: Pipeline
    paths: list[str]

    def __post_init__(self) -> None:
        held_out = self.job.options.training.held_out_files
        if held_out and held_out >= len(self.paths):
            raise DataError(
                f"training.held_out_files is {held_out}, but there are {len(self.paths)} files; hold out fewer, so that "
                "some are left to train on."
            )

    @property
    def first_evaluated(self) -> int:
        """Index of the first evaluated file, where a pipeline numbers its files."""
        return self._trained if self._holds_out and needs_probe(self.job.options) else 0

    def training(self) -> Any:
        return self._build(self.paths[: self._trained], "cache")

    def calibration(self) -> Any:
        return self._build(self.paths[: self._trained], "calibration-cache")

    def evaluation(self) -> Any:
        return self._build(self.paths[self._trained :] if self._holds_out else self.paths, "evaluation-cache")

    @property
    def _holds_out(self) -> bool:
        return self.job.options.training.held_out_files > 0

    @property
    def _trained(self) -> int:
        return len(self.paths) - self.job.options.training.held_out_files

    def _build(self, paths: list[str], cache: str) -> Any:
        return self.pipeline.make_dataset(paths, str(self.job.folder.scratch / cache))


MAX_HELD_BYTES = 50_000_000
"""A dataset that holds more data is not described: its graph would copy the data."""
_IGNORE_STATE = 1
_DATASET = re.compile(r"Dataset(V\d+)?$")
_FUNCTION = re.compile(r"__inference_(?:Dataset_)?(.+?)_\d+$")


def describe_written(dataset: tf.data.Dataset) -> WrittenPipeline | None:
    """Return the stages of a dataset, the outermost first; None if TensorFlow cannot serialize it."""
    try:
        if _held_bytes(dataset) > MAX_HELD_BYTES:
            return None
        variant = tf.data.experimental.to_variant(dataset)
        graph = tf.compat.v1.GraphDef.FromString(
            tf.raw_ops.DatasetToGraphV2(input_dataset=variant, external_state_policy=_IGNORE_STATE).numpy()
        )
        threads = dataset.options().threading.private_threadpool_size
    except (tf.errors.OpError, AttributeError, TypeError, ValueError):
        return None
    bodies = {function.signature.name: function for function in graph.library.function}
    stages = _Stages(bodies)
    result = next(node for node in graph.node if node.op == "_Retval")
    stages.add(result.input[0], {node.name: node for node in graph.node})
    return WrittenPipeline(tuple(stages.found), threads or len(core_numbers()))


class _Stages:
    """Collects datasets, the outermost first."""

    def __init__(self, bodies: Mapping[str, Any]) -> None:
        self._bodies = bodies
        self.found: list[WrittenStage] = []

    def add(self, name: str, nodes: Mapping[str, Any]) -> int:
        """Add a dataset and its inputs; return its index."""
        node = nodes[_node(name)]
        if node.op == "OptionsDataset":  # passes its input through
            return self.add(node.input[0], nodes)
        index = len(self.found)
        self.found.append(WrittenStage("", "", None, {}, ()))
        below = [name for name in map(_node, node.input) if name in nodes and _DATASET.search(nodes[name].op)]
        inputs = [self.add(name, nodes) for name in below]
        function = node.attr["f"].func.name if "f" in node.attr else None
        body = self._bodies.get(function) if function else None
        if body is not None:
            made = {inner.name: inner for inner in body.node_def}
            inputs += [self.add(name, made) for name in _returned(body) if _DATASET.search(made[_node(name)].op)]
        self.found[index] = WrittenStage(
            _metadata_name(node), node.op, _short_name(function), _arguments(node, nodes), tuple(inputs)
        )
        return index


def _node(name: str) -> str:
    return name.removeprefix("^").split(":")[0]


def _returned(body: Any) -> Iterable[str]:
    """Return the results of a function, looking through identities."""
    made = {inner.name: inner for inner in body.node_def}
    for name in body.ret.values():
        current = name
        while _node(current) in made and made[_node(current)].op == "Identity":
            current = made[_node(current)].input[0]
        if _node(current) in made:
            yield current


def _short_name(function: str | None) -> str | None:
    match = _FUNCTION.match(function or "")
    return match[1] if match else function


def _metadata_name(node: Any) -> str:
    """Read the name, the first field of a serialized ``tensorflow.data.Metadata``."""
    content = node.attr["metadata"].s if "metadata" in node.attr else b""
    return content[2:].decode("utf-8", "replace") if content[:1] == b"\n" else ""


def _arguments(node: Any, nodes: Mapping[str, Any]) -> dict[str, float | str]:
    """Return the constant scalar inputs of an op by name."""
    found: dict[str, float | str] = {}
    for name, source in zip(_input_names(node), map(_node, node.input), strict=False):
        tensor = nodes[source].attr["value"].tensor if source in nodes and nodes[source].op == "Const" else None
        if tensor is not None and not tensor.tensor_shape.dim and tf.as_dtype(tensor.dtype).is_numpy_compatible:
            value = tf.make_ndarray(tensor).item()
            found[name] = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return found


def _input_names(node: Any) -> list[str]:
    """Return the names of an op's inputs, repeated for a list of inputs."""
    signature = inspect.signature(getattr(tf.raw_ops, node.op))
    names = [name for name in signature.parameters if name not in node.attr and name != "name"]
    repeats = len(node.input) - len(names) + 1
    return [
        each for name in names for each in [name] * (repeats if name in ("other_arguments", "input_datasets") else 1)
    ]


def _held_bytes(dataset: Any) -> int:
    """Return the size of the tensors that a dataset and its functions hold, bytes."""
    own = list(getattr(dataset, "_tensors", ()))
    for wrapped in dataset._functions():
        own += wrapped.function.captured_inputs
        own += [op.outputs[0] for op in wrapped.function.graph.get_operations() if op.type == "Const"]
    size_bytes: int = sum((tensor.shape.num_elements() or 0) * tensor.dtype.size for tensor in own)
    return size_bytes + sum(_held_bytes(below) for below in dataset._inputs())
