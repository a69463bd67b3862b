"""Every way to call the training steps, on real pipelines, in the one process that has TensorFlow loaded."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest

from pipeline_lab.analysis.diagnosis.diagnose import diagnose
from pipeline_lab.analysis.sampling.evaluation import Evaluation
from pipeline_lab.analysis.sampling.file_sampling import FileSampling
from pipeline_lab.analysis.sampling.kept_outputs import read_kept_outputs
from pipeline_lab.analysis.steps.job_steps import JobSteps
from pipeline_lab.analysis.steps.recorded_steps import Steps
from pipeline_lab.analysis.steps.retracing import Retraces
from pipeline_lab.options.presets import find_preset
from pipeline_lab.options.profiling import ProfilingOptions
from pipeline_lab.options.run_options import RunOptions, read_options, set_options
from pipeline_lab.pipeline.source import needs_probe, render_source
from pipeline_lab.runs.run_documents import read_files
from pipeline_lab.runs.run_events import CalibrationEvent, NoteEvent, WindowEvent, read_events
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.run_tables import EVALUATED, NAMES, OUTPUTS, SAMPLES, STEPS, read_table
from tests.support.presets import SYNTHETIC
from tests.worker import test_real_jobs
from tests.worker.fakes import make_folder
from tests.worker.test_pipeline_that_runs import name_of

pytestmark = pytest.mark.tensorflow

Ask = Callable[..., Any]
SHORT = set_options(
    SYNTHETIC.options.model_copy(update={"profiling": ProfilingOptions(steps_per_window=4, every_steps=8)}),
    [
        ("training.steps", "16"),
        ("training.warmup_steps", "4"),
        ("workload.compute_ms", "1"),
        ("workload.map_ms", "0"),
        ("pipeline.batch.size", "5"),
    ],
)
IMAGES = set_options(test_real_jobs.IMAGES, [("training.calibrate", "false"), ("profiling.enabled", "false")])
KEPT_STEP = 7
LOOPS = [("in_graph", 4), ("keras_fit", 1), ("keras_fit", 4)]


def _with_loop(options: RunOptions, loop: str, per_call: int, *settings: tuple[str, str]) -> RunOptions:
    return set_options(options, [("training.loop", loop), ("training.steps_per_call", str(per_call)), *settings])


def _run(ask_tensorflow: Ask, root: Path, options: RunOptions) -> RunFolder:
    folder = make_folder(root, options)
    if needs_probe(options):
        folder.probed_source.write_text(render_source(options, probe=True))
    ask_tensorflow("run_here", folder=str(folder.path))
    return folder


@pytest.mark.parametrize(("loop", "per_call"), LOOPS)
def test_every_step_of_a_loop_is_timed_sampled_and_found_in_the_trace(
    ask_tensorflow: Ask, tmp_path: Path, loop: str, per_call: int
) -> None:
    folder = _run(ask_tensorflow, tmp_path, _with_loop(SHORT, loop, per_call))
    steps = read_table(folder.steps, STEPS).to_pydict()
    assert steps["step"] == list(range(20))
    assert steps["warmup"] == [True] * 4 + [False] * 16
    start, end = np.array(steps["start_ns"]), np.array(steps["end_ns"])
    assert (np.array(steps["wait_ns"]) >= 0).all()
    assert (end - start - np.array(steps["wait_ns"]) >= 1_000_000).all(), "each step computes for a millisecond"
    assert (start[1:] >= end[:-1]).all()
    samples = read_table(folder.samples, SAMPLES)
    assert samples["step"].to_pylist() == [step for step in range(20) for _ in range(5)]
    assert samples["record"].to_pylist() == list(range(100)), "in the order of the file"
    events = read_events(folder.events)
    (window, *_) = (event for event in events if isinstance(event, WindowEvent))
    assert (window.first_step, window.last_step) == (4, 7)
    assert steps["window"][3:9] == [-1, 1, 1, 1, 1, -1]
    (calibration,) = (event for event in events if isinstance(event, CalibrationEvent))
    assert (calibration.device_only_ns or 0) >= 1_000_000
    found = diagnose(folder.path).steps
    assert isinstance(found, Steps)
    assert (found.marker, found.steps_per_marker) == ("Trace 'train' (step_num)", per_call)
    assert found.count * per_call >= 4, "the first window, and what a slow flush left of a second one"


@pytest.mark.parametrize(("loop", "per_call"), LOOPS)
def test_data_that_ends_within_a_call_leaves_the_steps_before_it(
    ask_tensorflow: Ask, tmp_path: Path, loop: str, per_call: int
) -> None:
    settings = [
        ("workload.examples_per_file", "50"),
        ("pipeline.repeat.count", "1"),
        ("training.calibrate", "false"),
        ("profiling.enabled", "false"),
    ]
    folder = _run(ask_tensorflow, tmp_path, _with_loop(SHORT, loop, per_call, *settings))
    assert read_table(folder.steps, STEPS)["step"].to_pylist() == list(range(10))
    notes = [event.sentence for event in read_events(folder.events) if isinstance(event, NoteEvent)]
    assert [note[:41] for note in notes] == ["The data ended after 10 of 20 steps, warm"]


@pytest.mark.parametrize("loop", ["in_graph", "keras_fit"])
def test_names_come_out_of_a_loop_with_their_examples(ask_tensorflow: Ask, tmp_path: Path, loop: str) -> None:
    workload = {"kind": "generator", "examples_per_generator": [24], "ids": "strings", "example_ms": 0, "compute_ms": 0}
    stages = [{"stage": "read"}, {"stage": "batch", "size": 4}]
    options = read_options({"workload": workload, "pipeline": {"stages": stages}})
    settings = [
        ("training.steps", "4"),
        ("training.warmup_steps", "2"),
        ("training.calibrate", "false"),
        ("profiling.enabled", "false"),
    ]
    folder = _run(ask_tensorflow, tmp_path, _with_loop(options, loop, 2, *settings))
    names = read_table(folder.names, NAMES)
    assert names["step"].to_pylist() == [step for step in range(6) for _ in range(4)]
    assert names["name"].to_pylist() == [name_of(0, number) for number in range(24)]


def _check_outputs(folder: RunFolder) -> list[list[float]]:
    """Return the outputs that were kept, which have to explain loss and accuracy of their step."""
    steps, kept = read_table(folder.steps, STEPS).to_pydict(), read_table(folder.outputs, OUTPUTS)
    assert set(kept["step"].to_pylist()) == {KEPT_STEP}
    examples = read_kept_outputs(kept, read_files(folder.files))
    assert examples.right / kept.num_rows == pytest.approx(steps["accuracy"][KEPT_STEP])
    samples = read_table(folder.samples, SAMPLES)
    assert kept["record"].to_pylist() == samples.filter(pc.field("step") == KEPT_STEP)["record"].to_pylist()
    outputs: list[list[float]] = kept["outputs"].to_pylist()
    return outputs


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_model_learns_the_same_whoever_calls_its_steps(ask_tensorflow: Ask, tmp_path: Path, replicas: int) -> None:
    losses, outputs = [], []
    for loop, per_call in (("custom", 1), ("in_graph", 7), ("keras_fit", 7)):
        options = _with_loop(IMAGES, loop, per_call, ("training.replicas", str(replicas)))
        folder = _run(ask_tensorflow, tmp_path / loop, options)
        losses.append(read_table(folder.steps, STEPS)["loss"].to_pylist())
        outputs.append(np.array(_check_outputs(folder)))
    for other in (1, 2):
        assert losses[other] == pytest.approx(losses[0], rel=0.02)
        assert outputs[other] == pytest.approx(outputs[0], rel=0.1, abs=0.05)
    assert len(set(losses[0])) == 14


@pytest.mark.parametrize(("loop", "per_call"), [("custom", 1), ("keras_fit", 4)])
def test_outputs_of_replicas_are_kept_whole(ask_tensorflow: Ask, tmp_path: Path, loop: str, per_call: int) -> None:
    small = [
        ("workload.examples_per_file", "2x40"),
        ("workload.features", "2"),
        ("pipeline.batch.size", "8"),
        ("training.replicas", "2"),
        ("training.steps", "6"),
        ("training.warmup_steps", "2"),
        ("training.calibrate", "false"),
        ("training.keep_outputs_of_step", str(KEPT_STEP)),
        ("profiling.enabled", "false"),
    ]
    folder = _run(ask_tensorflow, tmp_path, _with_loop(find_preset("sparse").options, loop, per_call, *small))
    assert np.array(_check_outputs(folder)).shape == (8, 1)


def test_a_judged_batch_teaches_nothing(ask_tensorflow: Ask) -> None:
    first, again, trained = ask_tensorflow("judge", options=IMAGES.to_json())
    assert first == again
    assert trained != first


def test_shapes_that_change_are_traced_again_unless_the_loop_is_in_the_graph(
    ask_tensorflow: Ask, tmp_path: Path
) -> None:
    varied = [("workload.varied_lengths", "true"), ("pipeline.batch.mode", "padded_batch")]
    retraced = {}
    for loop, per_call in (("custom", 1), ("in_graph", 4)):
        options = _with_loop(SHORT, loop, per_call, *varied, ("training.calibrate", "false"))
        found = diagnose(_run(ask_tensorflow, tmp_path / loop, options).path).retraces
        assert isinstance(found, Retraces)
        retraced[loop] = found.steps
    assert retraced["custom"] > 0
    assert retraced["in_graph"] == 0


@pytest.mark.parametrize(("evaluation", "loop", "per_call"), [("rebuild", "custom", 1), ("keep", "keras_fit", 5)])
def test_a_pipeline_that_starts_over_shows_the_same_examples_again(
    ask_tensorflow: Ask, tmp_path: Path, evaluation: str, loop: str, per_call: int
) -> None:
    settings = [
        ("pipeline.shuffle.buffer_size", "1"),
        ("workload.examples_per_file", "60,60,20"),
        ("training.steps", "18"),
        ("training.evaluate_every", "5"),
        ("training.evaluate_steps", "2"),
        ("training.evaluation", evaluation),
        ("training.held_out_files", "1"),
        ("training.calibrate", "false"),
        ("profiling.every_steps", "20"),
    ]
    folder = _run(ask_tensorflow, tmp_path, _with_loop(IMAGES, loop, per_call, *settings))
    diagnosis = diagnose(folder.path)
    sampling, found, job = diagnosis.file_sampling, diagnosis.evaluation, diagnosis.job_steps
    assert isinstance(sampling, FileSampling)
    assert isinstance(found, Evaluation)
    assert isinstance(job, JobSteps)
    assert job.table.num_rows == 20
    is_rebuilt = evaluation == "rebuild"
    # batches of ten: with its buffer of one, a life of five steps reaches 51 of 120 examples
    assert sampling.table.column("samples").to_pylist() == ([200, 0] if is_rebuilt else [120, 80])
    assert sampling.reachable_percent == (pytest.approx(100 * 51 / 120) if is_rebuilt else None)
    predicted = sampling.coverage.column("predicted_percent").to_pylist()
    assert predicted == sampling.coverage.column("records_percent").to_pylist(), "nothing is random here"
    assert found.passes.column("step").to_pylist() == [5, 10, 15, 20]
    assert found.sampling is not None
    assert found.sampling.table.column("samples").to_pylist() == [80], (
        "twenty examples of the held-out file, four times"
    )
    assert 0 < (found.last_loss or 0) < 10
    away_ns = read_table(folder.steps, STEPS)["away_ns"].to_pylist()
    assert [step for step in range(20) if away_ns[step]] == [5, 10, 15]


def test_held_out_files_of_ones_own_keep_their_place_among_all(ask_tensorflow: Ask, tmp_path: Path) -> None:
    made = ask_tensorflow(
        "files_of", options=set_options(IMAGES, [("workload.examples_per_file", "30,20,20")]).to_json()
    )
    settings = [
        ("workload.data", "files"),
        ("workload.pattern", str(Path(made[0]).parent / "*.tfrecord")),
        ("training.evaluate_every", "8"),
        ("training.evaluate_steps", "2"),
        ("training.held_out_files", "1"),
        ("training.calibrate", "false"),
        ("profiling.enabled", "false"),
    ]
    folder = _run(ask_tensorflow, tmp_path, set_options(IMAGES, settings))
    assert set(read_table(folder.samples, SAMPLES)["file"].to_pylist()) == {0, 1}
    evaluated = read_table(folder.evaluated, EVALUATED)
    assert set(evaluated["file"].to_pylist()) == {2}
    assert sorted(set(evaluated["record"].to_pylist())) == list(range(20))
