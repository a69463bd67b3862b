import contextlib
import itertools
import json
import math
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

from pipeline_lab.options.profiling import ProfilingOptions
from pipeline_lab.options.run_options import RunOptions, set_options
from pipeline_lab.runs.run_events import NoteEvent, PhaseEvent, ProgressEvent, WindowEvent, read_events
from pipeline_lab.runs.run_tables import EVALUATED, LABELS, SAMPLES, STEPS, TableWriter, read_table
from pipeline_lab.worker.job_context import Job
from pipeline_lab.worker.record import step_results
from pipeline_lab.worker.record.step_recorder import StepRecorder
from pipeline_lab.worker.record.step_results import STEPS_AHEAD
from pipeline_lab.worker.record.step_windows import StepWindows
from pipeline_lab.worker.record.window_recorder import WindowRecorder
from pipeline_lab.worker.train.course import Course, EvaluationPasses, PlainLoop
from pipeline_lab.worker.train.training_steps import Batch, PythonSteps
from pipeline_lab.worker.workloads.data_files import record_id
from tests.support.patience import PATIENCE_S
from tests.support.presets import SYNTHETIC
from tests.worker.fakes import FakeProfiler, FakeTrainer, make_job, no_marker


class Ids:
    """As much of an eager tensor as the recorder needs."""

    def __init__(self, *ids: int) -> None:
        self._ids = np.array(ids)

    def __array__(self, *_: Any, **__: Any) -> Any:
        return self._ids


def _options(steps: int) -> RunOptions:
    options = set_options(SYNTHETIC.options, [("training.steps", str(steps))])
    return set_options(options, [("training.warmup_steps", "2")])


def _batches() -> Iterator[dict[str, Ids]]:
    for step in itertools.count():
        yield {"id": Ids(record_id(3, step), record_id(4, step))}


def _train(job: Job, batches: Iterator[Any], *, is_gpu: bool = False) -> FakeTrainer:
    trainer = FakeTrainer()
    recorder = StepRecorder(job, trainer, is_asynchronous=is_gpu, has_ids=True)
    windows = StepWindows(
        job.options.profiling, WindowRecorder(job.folder, FakeProfiler(), job.log, job.clock), job.log
    )
    _run(job, trainer, windows, recorder, batches)
    windows.finish()
    recorder.close()
    return trainer


def _run(job: Job, trainer: FakeTrainer, windows: StepWindows, recorder: StepRecorder, batches: Iterator[Any]) -> None:
    PlainLoop(Course(job, windows, recorder, no_marker), PythonSteps(trainer, job.clock)).run(batches, lambda _: None)


@pytest.mark.parametrize("is_gpu", [False, True])
def test_every_step_has_a_row_and_warm_up_is_kept_apart(tmp_path: Path, is_gpu: bool) -> None:
    job = make_job(tmp_path, _options(4))
    _train(job, _batches(), is_gpu=is_gpu)
    table = read_table(job.folder.steps, STEPS)
    assert table["step"].to_pylist() == [0, 1, 2, 3, 4, 5]
    assert table["warmup"].to_pylist() == [True, True, False, False, False, False]
    assert table["loss"].to_pylist() == [1, 2, 3, 4, 5, 6]
    assert table["window"].to_pylist() == [-1, -1, 1, 1, 1, 1]
    for row in table.to_pylist():
        assert row["start_ns"] <= row["start_ns"] + row["wait_ns"] <= row["end_ns"]


class LateTrainer(FakeTrainer):
    """A device that is always as far behind as it may be: a step is done when the third one after it has been launched.

    The training waits for the result of the first step.
    """

    def __init__(self, steps: int) -> None:
        super().__init__()
        self._all, self._launched = steps, threading.Condition()
        self.furthest_ahead = 0

    def step(self, batch: Batch) -> int:
        with self._launched:
            self.furthest_ahead = max(self.furthest_ahead, self.steps + 1 - len(self.reads))
            step = super().step(batch)
            self._launched.notify_all()
            return step

    def read(self, result: Any) -> tuple[float, float]:
        with self._launched:
            needed = min(result + STEPS_AHEAD - 1, self._all) if result > 1 else 1
            assert self._launched.wait_for(lambda: self.steps >= needed, PATIENCE_S), "the training waits for a result"
            return super().read(result)


def test_the_training_goes_on_while_a_device_is_a_few_steps_behind(tmp_path: Path) -> None:
    job, trainer = make_job(tmp_path, _options(10)), LateTrainer(12)
    recorder = StepRecorder(job, trainer, is_asynchronous=True, has_ids=False)
    windows = StepWindows(
        ProfilingOptions(enabled=False), WindowRecorder(job.folder, FakeProfiler(), job.log, job.clock), job.log
    )
    _run(job, trainer, windows, recorder, _batches())
    recorder.close()
    windows.finish()
    assert trainer.furthest_ahead == STEPS_AHEAD
    table = read_table(job.folder.steps, STEPS)
    assert table["loss"].to_pylist() == list(range(1, 13))
    ready = table["ready_ns"].to_pylist()
    assert ready == sorted(ready)
    assert ready[1] > table["start_ns"].to_pylist()[STEPS_AHEAD]


class OnDevice(Ids):
    """Ids in the memory of a device; ``readers`` are the threads that copied them."""

    backing_device = "/job:localhost/replica:0/task:0/device:GPU:0"

    def __init__(self, readers: set[int], *ids: int) -> None:
        super().__init__(*ids)
        self._readers = readers

    def __array__(self, *_: Any, **__: Any) -> Any:
        self._readers.add(threading.get_ident())
        return super().__array__()


@pytest.fixture
def copied_by_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copy batches to the host without TensorFlow, which would have to be loaded for it."""

    def copy(batch: dict[str, Any]) -> dict[str, Any]:
        return {name: np.asarray(value) for name, value in batch.items()}

    monkeypatch.setattr(step_results, "_read_entries_on_host", copy)


@pytest.mark.usefixtures("copied_by_numpy")
def test_what_a_batch_holds_on_a_device_is_read_beside_the_training(tmp_path: Path) -> None:
    readers: set[int] = set()
    job = make_job(tmp_path, _options(1))
    _train(job, ({"id": OnDevice(readers, record_id(3, step))} for step in itertools.count()), is_gpu=True)
    assert read_table(job.folder.samples, SAMPLES)["record"].to_pylist() == [0, 1, 2]
    assert readers
    assert threading.get_ident() not in readers


@pytest.mark.usefixtures("copied_by_numpy")
def test_a_pass_reads_what_a_batch_holds_on_a_device_beside_its_steps_and_in_order(tmp_path: Path) -> None:
    readers: set[int] = set()
    job = make_job(tmp_path, set_options(_options(1), [("training.evaluate_steps", "6")]))
    batches = [{"id": OnDevice(readers, record_id(3, step), record_id(4, step))} for step in range(6)]
    with contextlib.closing(TableWriter(job.folder.evaluated, EVALUATED)) as table:
        EvaluationPasses(job, FakeTrainer(), lambda: batches, table, 10, is_asynchronous=True).run(3)
    rows = read_table(job.folder.evaluated, EVALUATED)
    assert rows["file"].to_pylist() == [13, 14] * 6
    assert rows["record"].to_pylist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert readers
    assert threading.get_ident() not in readers


def test_samples_name_file_and_record(tmp_path: Path) -> None:
    job = make_job(tmp_path, _options(1))
    _train(job, _batches())
    rows = read_table(job.folder.samples, SAMPLES).to_pylist()
    assert [tuple(row.values()) for row in rows] == [(0, 3, 0), (0, 4, 0), (1, 3, 1), (1, 4, 1), (2, 3, 2), (2, 4, 2)]


def test_labels_are_counted_per_step_where_there_are_any(tmp_path: Path) -> None:
    job = make_job(tmp_path, _options(1))
    _train(job, ({**batch, "label": Ids(7, step % 2 * 7)} for step, batch in enumerate(_batches())))
    rows = read_table(job.folder.labels, LABELS).to_pylist()
    assert [tuple(row.values()) for row in rows] == [(0, 0, 1), (0, 7, 1), (1, 7, 2), (2, 0, 1), (2, 7, 1)]
    unlabelled = make_job(tmp_path / "other", _options(1))
    _train(unlabelled, _batches())
    assert read_table(unlabelled.folder.labels, LABELS).num_rows == 0


def test_data_that_ends_early_is_a_note_and_a_normal_end(tmp_path: Path) -> None:
    job = make_job(tmp_path, _options(10))
    _train(job, itertools.islice(_batches(), 5))
    (note,) = (event for event in read_events(job.folder.events) if isinstance(event, NoteEvent))
    assert note.sentence.startswith("The data ended after 5 of 12 steps")
    (window,) = (event for event in read_events(job.folder.events) if isinstance(event, WindowEvent))
    assert (window.first_step, window.last_step) == (2, 4)


def test_a_request_to_stop_ends_the_job_after_the_current_step(tmp_path: Path) -> None:
    job = make_job(tmp_path, _options(1000))

    def stop_at_fifth() -> Iterator[Any]:
        for step, batch in enumerate(_batches()):
            job.stop.is_set = step == 5
            yield batch

    _train(job, stop_at_fifth())
    assert read_table(job.folder.steps, STEPS).num_rows == 6
    assert len(job.folder.windows()) == 1


def test_a_job_may_train_for_a_time_instead(tmp_path: Path) -> None:
    options = _options(1)
    training = options.training.model_copy(update={"steps": None, "seconds": 0.05})
    job = make_job(tmp_path, options.model_copy(update={"training": training}))
    _train(job, _batches())
    (first, *_, last) = (event for event in read_events(job.folder.events) if isinstance(event, ProgressEvent))
    assert (first.steps, first.total_steps, first.total_s) == (0, None, 0.05)
    assert last.elapsed_s >= 0.05
    assert last.steps == read_table(job.folder.steps, STEPS).num_rows - 2


@pytest.mark.parametrize("evaluation", ["rebuild", "keep"])
def test_training_gives_way_to_evaluations_and_goes_on(tmp_path: Path, evaluation: str) -> None:
    options = set_options(_options(6), [("training.evaluate_every", "3"), ("training.evaluation", evaluation)])
    job = make_job(tmp_path, options)
    trainer, evaluated = FakeTrainer(), list[tuple[int, int]]()
    recorder = StepRecorder(job, trainer, is_asynchronous=True, has_ids=True)
    windows = StepWindows(
        job.options.profiling, WindowRecorder(job.folder, FakeProfiler(), job.log, job.clock), job.log
    )

    def evaluate(steps: int) -> None:
        evaluated.append((steps, len(trainer.reads)))
        time.sleep(0.02)

    course = Course(job, windows, recorder, no_marker, evaluate=evaluate)
    loop, lives = PlainLoop(course, PythonSteps(trainer, job.clock)), 1
    loop.run(_batches(), lambda _: None)
    while course.needs_new_pipeline:
        course.take_new_pipeline()
        loop.run(_batches(), lambda _: None)
        lives += 1
    windows.finish()
    recorder.close()
    assert evaluated == [(3, 3), (6, 6)], "every result has been read by then"
    assert lives == (3 if evaluation == "rebuild" else 1)
    table = read_table(job.folder.steps, STEPS)
    assert table["step"].to_pylist() == list(range(8))
    away = table["away_ns"].to_pylist()
    assert [step for step in range(8) if away[step] > 0] == [3, 6]
    assert min(away[3], away[6]) >= 20_000_000
    taken = [event for event in read_events(job.folder.events) if isinstance(event, WindowEvent)]
    assert [(window.first_step, window.last_step) for window in taken] == [(2, 2)], "a window holds training alone"


def test_readers_see_warm_up_and_training_as_phases(tmp_path: Path) -> None:
    job = make_job(tmp_path, _options(1))
    _train(job, _batches())
    phases = [event.phase for event in read_events(job.folder.events) if isinstance(event, PhaseEvent)]
    assert phases == ["warmup", "training"]


def test_the_python_time_of_the_synthetic_workload_comes_after_each_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("pipeline_lab.worker.job_context.time.sleep", pauses.append)
    job = make_job(tmp_path, set_options(_options(3), [("workload.python_ms", "20")]))
    _train(job, _batches())
    assert pauses == [0.02] * 5


class LosingTrainer(FakeTrainer):
    """Finds the same loss in every batch, and no accuracy."""

    def __init__(self, loss: float) -> None:
        super().__init__()
        self._loss = loss

    def read(self, result: Any) -> tuple[float, float]:
        del result
        return self._loss, math.nan


def refuse(constant: str) -> NoReturn:
    raise AssertionError(f"JSON knows no {constant}")


@pytest.mark.parametrize(("loss", "told"), [(2.5, 2.5), (math.nan, None), (math.inf, None)])
def test_a_pass_writes_down_numbers_that_json_can_hold(tmp_path: Path, loss: float, told: float | None):
    job = make_job(tmp_path, SYNTHETIC.options)
    EvaluationPasses(job, LosingTrainer(loss), lambda: [{}, {}], None, 0).run(3)
    events = [json.loads(line, parse_constant=refuse) for line in job.folder.events.read_text().splitlines()]
    found = next(event for event in events if event["kind"] == "evaluation")
    assert (found["batches"], found["loss"], found["accuracy"]) == (2, told, None)
