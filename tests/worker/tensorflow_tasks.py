"""What tests ask of a process that has TensorFlow loaded; ``python -m tests.worker.tensorflow_tasks`` serves them."""

import contextlib
import hashlib
import itertools
import multiprocessing
import signal
import tempfile
import threading
import time
import unittest.mock
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.autograph.impl import api
from tensorflow.python.eager import context

from pipeline_lab.capture.script import job_threads
from pipeline_lab.capture.script.step_notes import Pass, Role
from pipeline_lab.errors import DataError, PipelineLabError
from pipeline_lab.options.race_options import read_race_options
from pipeline_lab.options.run_options import RunOptions, read_options
from pipeline_lab.pipeline.source import render_source
from pipeline_lab.runs.run_documents import write_written
from pipeline_lab.runs.run_events import CheckpointEvent, read_events
from pipeline_lab.runs.run_folder import RunFolder, read_record
from pipeline_lab.runs.run_tables import EVALUATED, MODEL, TableWriter, read_table
from pipeline_lab.worker.job_context import Job, StopRequest, StopRequestedError
from pipeline_lab.worker.note.event_log import Clock, EventLog
from pipeline_lab.worker.note.failures import explain_failure
from pipeline_lab.worker.prepare.job_pipeline import describe_written
from pipeline_lab.worker.prepare.user_code import import_pipeline
from pipeline_lab.worker.race.race_session import run_race
from pipeline_lab.worker.record import window_recorder
from pipeline_lab.worker.record.pipeline_model import ModelProbe, period_s, sample_model
from pipeline_lab.worker.record.step_recorder import measure_padding
from pipeline_lab.worker.train.course import EvaluationPasses
from pipeline_lab.worker.training_session import CheckpointWriter, run_session
from pipeline_lab.worker.workloads import data_and_step, synthetic
from pipeline_lab.worker.workloads import images as workload_images
from pipeline_lab.worker.workloads.data_and_step import make_trainer
from pipeline_lab.worker.workloads.images import build_network, cifar_images, digit_images, random_images
from pipeline_lab.workloads.records import RecordsWorkload
from tests.support.patience import PATIENCE_S
from tests.support.warm_worker import find_task, serve
from tests.worker.fakes import make_job

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)
WHOLE_NETWORK = workload_images.STAGE_CHANNELS
window_recorder.lower_own_priority = lambda: None  # beside other tests, its turn would come once in ten
workload_images.STAGE_CHANNELS = (4,)  # most of the time goes into tracing; whole jobs have the whole network
Elements = list[dict[str, Any]]
JPEG = tf.io.encode_jpeg(np.zeros([8, 8, 3], np.uint8)).numpy()


def files_of(options: str) -> list[str]:
    """Make the files of a workload, or find the user's."""
    workload = read_options(options).workload
    with tempfile.TemporaryDirectory() as folder:
        files = data_and_step.prepare_files(workload, EventLog(Path(folder) / "events.jsonl"), StopRequest())
    return [file.path for file in files]


def search_misfit(path: str) -> tuple[str, str | None, str]:
    """Search a file for a record without the number ``x``: to its end, after the time is up, and when the job shall end."""
    workload = RecordsWorkload(pattern=path, features="x:int64")
    files, stop, ended = [data_and_step.DataFile(path, None, Path(path).stat().st_size)], StopRequest(), ""
    named = str(data_and_step.find_misfit(workload, files, stop))
    late = data_and_step.find_misfit(workload, files, stop, limit_s=-1.0)
    stop.request()
    try:
        data_and_step.find_misfit(workload, files, stop)
    except StopRequestedError as error:
        ended = type(error).__name__
    return named, late and str(late), ended


def data_bytes_of(options: str) -> int:
    """Return what the files of a workload and the tables beside them take on disk."""
    files = [data_and_step.DataFile(path, None, Path(path).stat().st_size) for path in files_of(options)]
    return sum(file.size_bytes for file in [*files, *data_and_step.find_tables(read_options(options).workload, files)])


def ids_of(options: str, probe: bool = False, batches: int | None = None) -> list[list[int]]:
    """Return the ids of each batch that the pipeline yields."""
    elements = itertools.islice(_dataset(read_options(options), probe), batches)
    return [batch["id"].numpy().tolist() for batch in elements]


def names_of(options: str) -> list[str]:
    """Return the names of all examples, in the order in which they came."""
    return [name.decode() for batch in _drain(read_options(options), False, None) for name in batch["name"].tolist()]


def processes_of(options: str) -> dict[str, int]:
    """Count the processes that a pipeline has started, while it runs and when nobody holds it any more."""
    before = set(multiprocessing.active_children())  # of a job whose end is still under way
    iterator = iter(_dataset(read_options(options), False))
    next(iterator)
    own = set(multiprocessing.active_children()) - before
    del iterator
    deadline_s = time.monotonic() + PATIENCE_S
    while (left := own.intersection(multiprocessing.active_children())) and time.monotonic() < deadline_s:
        time.sleep(0.05)
    return {"while it ran": len(own), "behind it": len(left)}


def evaluate_names(options: str) -> list[dict[str, Any]]:
    """Evaluate once, and return what was noted of the examples."""
    parsed = read_options(options)
    with tempfile.TemporaryDirectory() as path:
        folder = RunFolder(Path(path))
        job = Job(folder, parsed, EventLog(folder.events), StopRequest(), Clock())
        with contextlib.closing(TableWriter(folder.evaluated, EVALUATED)) as table:
            trainer = make_trainer(parsed, is_gpu=False)
            EvaluationPasses(job, trainer, lambda: _dataset(parsed, False), table, 0).run(1)
        rows: list[dict[str, Any]] = read_table(folder.evaluated, EVALUATED).to_pylist()
    return rows


def kill_a_process(options: str) -> str:
    """Kill one of the processes that make examples, and return how the end of the pipeline is explained."""
    others = set(multiprocessing.active_children())
    iterator = iter(_dataset(read_options(options), False))
    next(iterator)
    before = signal.signal(signal.SIGTERM, lambda *_: None)  # as a worker listens to it
    (set(multiprocessing.active_children()) - others).pop().kill()
    try:
        for _ in iterator:
            pass
    except tf.errors.OpError as error:
        return explain_failure(error)
    finally:
        signal.signal(signal.SIGTERM, before)
    return "no failure"


def images_of(options: str, probe: bool = False, batches: int | None = None) -> list[list[str]]:
    """Return a digest of each image and its label, batch by batch, in the order in which they came."""
    return [
        [
            hashlib.sha256(image.tobytes() + bytes(label)).hexdigest()
            for image, label in zip(batch["image"], batch["label"], strict=True)
        ]
        for batch in _drain(read_options(options), probe, batches)
    ]


def first_images(options: str) -> dict[str, Any]:
    """Describe the images of the first batch."""
    (batch,) = _drain(read_options(options), False, 1)
    images = batch["image"]
    return {
        "shape": images.shape,
        "type": str(images.dtype),
        "means": images.mean(axis=(1, 2, 3)).tolist(),
        "deviations": images.std(axis=(1, 2, 3)).tolist(),
        "zeros": (images == 0).all(axis=-1).sum(axis=(1, 2)).tolist(),
        "different": len({image.tobytes() for image in images}),
    }


def look_at_views(options: str) -> dict[str, Any]:
    """Say which of an image's views mirror the first ones, and how many of those are parts of the image itself."""
    parsed = read_options(options)
    views = _drain(parsed, False, 1)[0]["image"]
    stages = [stage for stage in parsed.pipeline.stages if stage.stage != "views"]
    plain = parsed.model_copy(update={"pipeline": parsed.pipeline.model_copy(update={"stages": tuple(stages)})})
    image, size, half = _drain(plain, False, 1)[0]["image"][0], views.shape[1], len(views) // 2
    windows = np.lib.stride_tricks.sliding_window_view(image, (size, size), axis=(0, 1))
    parts = {np.moveaxis(part, 0, -1).tobytes() for row in windows for part in row}
    unmirrored = np.concatenate([views[:half], views[half:, :, ::-1]])
    return {
        "mirrored": [at for at in range(half, len(views)) if (views[at] == views[at - half][:, ::-1]).all()],
        "inside": sum(view.tobytes() in parts for view in unmirrored),
    }


def name_damage(files: list[str], stopped: bool = False) -> str | None:
    stop = StopRequest()
    stop.is_set = stopped
    try:
        error = data_and_step.find_damage([data_and_step.DataFile(file, None, 0) for file in files], stop)
    except StopRequestedError:
        return "stopped"
    return None if error is None else str(error)


def explain_training(options: str, records: list[dict[str, Any]]) -> str:
    """Train on records of these features, which do not fit, and return how the failure is explained."""
    parsed = read_options(options)
    with tempfile.TemporaryDirectory() as folder:
        write_examples(Path(folder) / "a.tfrecord", records)
        workload = parsed.workload.model_copy(update={"pattern": f"{folder}/*"})
        try:
            dataset = _dataset(parsed.model_copy(update={"workload": workload}), False)
            trainer = make_trainer(parsed, is_gpu=False)
            for batch in dataset:
                trainer.read(trainer.step(batch))
        except (tf.errors.OpError, UnicodeDecodeError) as error:
            return explain_failure(error)
    return "no failure"


def write_examples(path: Path, records: list[dict[str, Any]]) -> None:
    """Write Examples; a value that is a string is bytes, an int an int64, and a record without features is garbage."""
    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in records:
            features = {name: _feature(value) for name, value in record.items()}
            example = tf.train.Example(features=tf.train.Features(feature=features))
            writer.write(example.SerializeToString() if record else b"\xff" * 20)


def _feature(value: Any) -> Any:
    if isinstance(value, str):
        content = JPEG if value == "jpeg" else value.encode()
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[content]))
    if isinstance(value, int):
        return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))
    return tf.train.Feature(float_list=tf.train.FloatList(value=[value]))


def count_weights(image_size: int, classes: int) -> int:
    with unittest.mock.patch.object(workload_images, "STAGE_CHANNELS", WHOLE_NETWORK):
        network = build_network(image_size, classes)
    return int(sum(np.prod(weight.shape) for weight in network.trainable_variables))


def digits() -> dict[str, Any]:
    images = digit_images(32)
    first = tf.io.decode_jpeg(images.jpegs[0]).numpy()
    return {"count": len(images.jpegs), "labels": sorted(set(images.labels)), "shape": first.shape}


def cifar(is_online: bool) -> Any:
    """Take three photographs from a download of four that is there, or is not."""

    def load_data() -> Any:
        if not is_online:
            raise Exception("URL fetch failure")
        return (np.zeros([4, 32, 32, 3], np.uint8), np.arange(4)[:, np.newaxis]), None

    with unittest.mock.patch("keras.datasets.cifar10.load_data", load_data):
        try:
            images = cifar_images(16, 3)
        except DataError as error:
            return str(error)
    shape = tf.io.decode_jpeg(images.jpegs[0]).numpy().shape
    return {"count": len(images.jpegs), "labels": images.labels, "shape": shape}


def noise() -> dict[str, Any]:
    images = random_images(16, 3, 5)
    return {"different": len(set(images.jpegs)), "labels": sorted(set(images.labels))}


def train(options: str, steps: int) -> dict[str, Any]:
    """Train on the first batch over and over, undo it, and train again; name also the functions that AutoGraph rewrote."""
    parsed = read_options(options)
    tf.keras.utils.set_random_seed(0)
    trainer = make_trainer(parsed, is_gpu=False)
    batch = next(iter(trainer.distribute(_dataset(parsed, False))))
    state = trainer.save_state()
    with unittest.mock.patch.object(api, "_convert_actual", wraps=api._convert_actual) as rewriting:
        first = [trainer.read(trainer.step(batch)) for _ in range(steps)]
    trainer.restore_state(state)
    again = trainer.read(trainer.step(batch))
    return {
        "rewritten": [call.args[0].__qualname__ for call in rewriting.call_args_list],
        "losses": [loss for loss, _ in first],
        "accuracies": [accuracy for _, accuracy in first],
        "again": again[0],
        "ids": [[int(each) for each in part] for part in trainer.parts(batch["id"])] if "id" in batch else [],
    }


def train_on_vectors(options: str, steps: int) -> dict[str, Any]:
    """Train on the first batch of captions over and over; return the losses, and a digest of the vectors that came."""
    parsed = read_options(options)
    tf.keras.utils.set_random_seed(0)
    files = [data_and_step.DataFile(path, None, 0) for path in files_of(options)]
    tables = data_and_step.find_tables(parsed.workload, files)
    trainer = make_trainer(parsed, is_gpu=False, tables=tables)
    batch = next(iter(_dataset(parsed, False)))
    results = [trainer.read(trainer.step(batch)) for _ in range(steps)]
    vectors = batch["vector"].numpy().tobytes() if "vector" in batch else b""
    return {
        "losses": [loss for loss, _ in results],
        "accuracy": results[-1][1],
        "vectors": hashlib.sha256(vectors).hexdigest() if vectors else None,
        "tables": [(table.records, table.size_bytes) for table in tables],
    }


def judge(options: str) -> list[float]:
    """Return the loss of one batch judged twice, and once more after a training step on it."""
    parsed = read_options(options)
    trainer = make_trainer(parsed, is_gpu=False)
    (batch,) = itertools.islice(_dataset(parsed, False), 1)
    before = [trainer.read(trainer.evaluate(batch))[0] for _ in range(2)]
    trainer.read(trainer.step(batch))
    return [*before, trainer.read(trainer.evaluate(batch))[0]]


def run_here(folder: str) -> None:
    """Run the job of a run folder in this process."""
    run = RunFolder(Path(folder))
    options = read_options(read_record(run).options or {})
    run_session(Job(run, options, EventLog(run.events), StopRequest(), Clock()))


def race_here(folder: str) -> None:
    """Run the race of a run folder in this process."""
    run = RunFolder(Path(folder))
    run_race(run, read_race_options(read_record(run).options or {}), EventLog(run.events), StopRequest())


def shapes_of(options: str) -> list[list[int]]:
    """Return the shape of each batch's payload."""
    return [list(batch["payload"].shape) for batch in _drain(read_options(options), False, None)]


def paddings_of(options: str) -> list[dict[str, Any]]:
    """Return the lengths of each batch's examples, and what was measured of its padding."""
    return [
        {"lengths": batch["length"].numpy().tolist(), **vars(measure_padding(batch))}
        for batch in _dataset(read_options(options), False)
    ]


def time_of(options: str) -> float:
    """Return how long the pipeline takes from the first batch to the last, s."""
    dataset = _dataset(read_options(options), False)
    begun_s = time.perf_counter()
    for _ in dataset:
        pass
    return time.perf_counter() - begun_s


def checkpoint_bytes(options: str) -> int:
    """Take two steps, write a checkpoint after the second, and return its size."""
    parsed = read_options(options)
    trainer = make_trainer(parsed, is_gpu=False)
    with tempfile.TemporaryDirectory() as folder:
        events = Path(folder) / "events.jsonl"
        checkpoints = CheckpointWriter(trainer, Path(folder), 2, EventLog(events), Clock())
        for step, batch in zip(range(2), _dataset(parsed, False), strict=False):
            assert not list(Path(folder).rglob("*.index"))
            trainer.read(trainer.step(batch))
            checkpoints.after_steps(step, step)
        (noted,) = [event for event in read_events(events) if isinstance(event, CheckpointEvent)]
        assert noted.started_ns < noted.ended_ns
        return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())


def iterator_names(options: str) -> list[str]:
    """Return the kinds of iterators that TensorFlow made of a pipeline, root first."""
    iterator = iter(_dataset(read_options(options), False))
    next(iterator)
    model = tf.data.experimental.get_model_proto(iterator)
    return [node.name for node in model.nodes.values()]


def model_periods(ages: list[list[float]]) -> list[float]:
    """Return when the next sample of a pipeline is due, for pairs of its age (s) and its number of nodes."""
    return [period_s(age_s, int(nodes)) for age_s, nodes in ages]


def sample_a_pipeline(folder: str) -> int:
    """Take 20 batches of a small pipeline under the model probe and keep how it was written; return its threads."""

    def double(value: tf.Tensor) -> tf.Tensor:
        return 2 * value

    options = tf.data.Options()
    options.threading.private_threadpool_size = 5
    options.experimental_optimization.map_and_batch_fusion = False
    dataset = tf.data.Dataset.range(8000).map(double, num_parallel_calls=2).batch(4, drop_remainder=True).prefetch(3)
    dataset = dataset.with_options(options)
    written = describe_written(dataset)
    assert written is not None
    write_written(Path(folder) / "written.json", written)
    iterator = iter(dataset)
    with sample_model(Path(folder) / "model.arrows", Clock()) as probe:
        probe.follow(iterator)
        for _ in range(20):
            next(iterator)
    return written.pool_threads


def sample_without_autotune(folder: str) -> int:
    """Look at a pipeline whose options switch its model off; return the rows."""
    options = tf.data.Options()
    options.autotune.enabled = False
    iterator = iter(tf.data.Dataset.range(3).with_options(options))
    with contextlib.closing(TableWriter(Path(folder) / "model.arrows", MODEL)) as table:
        probe = ModelProbe(table, Clock())
        probe.follow(iterator)
        return probe.sample()


def _drain(options: RunOptions, probe: bool, batches: int | None) -> Elements:
    elements = itertools.islice(_dataset(options, probe), batches)
    return [{name: value.numpy() for name, value in batch.items()} for batch in elements]


def _dataset(options: RunOptions, probe: bool) -> Any:
    tf.random.set_seed(options.training.seed)
    files = files_of(options.to_json())
    with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as file:
        file.write(render_source(options, probe=probe))
    try:
        return import_pipeline(Path(file.name)).make_dataset(files, tempfile.mkdtemp())
    finally:
        Path(file.name).unlink()


def run_own(root: str, options: str) -> str:
    """Do a whole job in this process, and return the sentence on its failure; empty if it went well."""
    job = make_job(Path(root), read_options(options))
    try:
        run_session(job)
    except PipelineLabError as error:
        return str(error)
    finally:
        for thread in threading.enumerate():
            if thread.name == "first batch":  # it would end this process minutes later
                thread.join(PATIENCE_S)
                assert not thread.is_alive(), "somebody still waits for the first batch of a job that ended"
    return ""


def describe_gpu_step(products: int, widths: list[int]) -> dict[str, int]:
    """Take steps of the synthetic workload on payloads of these widths, with products of single numbers on the CPU."""
    factor = 0.999
    with unittest.mock.patch.object(synthetic, "MATRIX_SIZE", 1):
        timer = synthetic.GpuTimer(synthetic.SyntheticStepTimes(compute_ms=1))
    timer._products, timer._matrix = products, tf.constant([[factor]])
    results = [float(timer.step({"payload": tf.zeros([2, width], tf.uint8)})[0]) for width in widths]
    traced = [function.graph.as_graph_def() for function in timer._compute._list_all_concrete_functions()]
    nodes = [len(graph.node) + sum(len(each.node_def) for each in graph.library.function) for graph in traced]
    return {
        "products": round(np.log(results[-1]) / np.log(factor)) - 1,
        "graphs": timer._compute.experimental_get_tracing_count(),
        "nodes": max(nodes),
    }


def count_gpu_products(compute_ms: float, product_us: list[float]) -> int:
    """Return the products of a step by a clock that gives them these times, trial after trial, then the last one."""
    trials, now_ns = 0, 0

    def read_clock() -> int:
        nonlocal trials, now_ns
        if trials % 2:
            each_us = product_us[min(trials // 2, len(product_us) - 1)]
            now_ns += round(2 ** (trials // 2 + 1) * synthetic.MATRIX_TRIALS * each_us * 1000)
        trials += 1
        return now_ns

    with (
        unittest.mock.patch.object(synthetic, "MATRIX_SIZE", 1),
        unittest.mock.patch.object(synthetic, "time", SimpleNamespace(perf_counter_ns=read_clock)),
    ):
        return synthetic.GpuTimer(synthetic.SyntheticStepTimes(compute_ms=compute_ms))._products


def leave_something_behind() -> None:
    """Leave what a job, a seeded dataset and a loop leave in a process."""
    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    tf.random.set_seed(3)
    job_threads.here.of = job_threads.anywhere.of = Pass("behind", examples=1)
    job_threads.here.role = Role.FIT
    job_threads.trained.add("behind")


def find_remains() -> dict[str, Any]:
    """Return what a task finds of earlier ones."""
    here = job_threads.here
    return {
        "precision": keras.mixed_precision.global_policy().name,
        "seed": context.global_seed(),
        "batches": [
            here.of is not None,
            job_threads.anywhere.of is not None,
            here.role is not None,
            bool(job_threads.trained),
        ],
    }


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Let a task find nothing of earlier ones that its answer could hang on, and leave nobody who listens to later ones."""
    keras.mixed_precision.set_global_policy("float32")
    tf.random.set_seed(None)
    job_threads.here.__dict__.clear()
    job_threads.anywhere.of = None
    job_threads.trained.clear()
    yield
    assert not job_threads.listeners, "the task still listens to the steps of this process"


if __name__ == "__main__":
    serve(lambda name: _undisturbed()(find_task(name, globals())))
