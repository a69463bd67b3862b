"""Jobs whose dataset and step come from a module of the user's: good ones train, bad ones end with file and line."""

import contextlib
import math
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline_lab.errors import UserCodeError
from pipeline_lab.options.run_options import RunOptions, own_options, read_options
from pipeline_lab.runs.run_documents import read_files, read_written
from pipeline_lab.runs.run_events import NoteEvent, read_events
from pipeline_lab.runs.run_folder import RunFolder, read_record
from pipeline_lab.runs.run_tables import STEPS, read_table
from pipeline_lab.worker.note import failures
from pipeline_lab.worker.note.failures import FirstBatch, explaining_errors, explaining_hard_exits
from tests.support.patience import PATIENCE_S

STEP = """
import tensorflow as tf

class Job:
    def __init__(self, examples=1000, fail_at=None):
        self.weight, self.fail_at, self.steps = tf.Variable(1.0), fail_at, 0
        self.variables = [self.weight]
        self.files = [__file__]
        self.examples = examples

    def make_dataset(self):
        return tf.data.Dataset.range(self.examples).map(double, num_parallel_calls=2).batch(4)

    def step(self, batch):
        self.weight.assign_add(1.0)
        self.steps += 1
        if self.steps == self.fail_at:
            raise ValueError("the batch is empty")
        return self.weight, 0.5

def double(number):
    return 2 * number

PRESETS = {"short": {"examples": 40}}
"""
MODEL = """
import keras, tensorflow as tf

def make(units=1):
    class Job:
        model = keras.Sequential([keras.layers.Dense(units)])
        def make_dataset(self):
            xs = tf.data.Dataset.from_tensors((tf.ones([3]), tf.ones([1])))
            return xs.repeat().batch(4)
    job = Job()
    job.model.compile(optimizer="sgd", loss="mse", metrics=["mae"])
    return job
"""
BAD = {
    "import": ("import nowhere_to_be_found", "import.py, line 1 with ModuleNotFoundError: No module named 'nowhere"),
    "syntax": ("x = 1\ndef make(:", "syntax.py, line 2 with SyntaxError"),
    "leaves": ("import os\nos._exit(3)", "called os._exit(3) at bad_leaves.py, line 2"),
    "exits": ("import sys\nsys.exit(4)", "bad_exits.py, line 2 with SystemExit: 4"),
    "nothing": ("", "bad_nothing.py has no function or class make"),
    "type": ("def make():\n    return [1]", "make (bad_type.py, line 1) returned an object of type list; it should"),
    "arguments": (
        "def make(size):\n    pass",
        "make (bad_arguments.py, line 1) cannot be called like this: missing a required",
    ),
    "dataset": (
        "class make:\n    step = print\n    def make_dataset(self):\n        return [1, 2]",
        "make_dataset (bad_dataset.py, line 3) returned an object of type list",
    ),
    "generator": (
        "import tensorflow as tf\nclass make:\n    def make_dataset(self):\n"
        "        return tf.data.Dataset.from_generator(self.yield_one, output_signature=tf.TensorSpec([], tf.int64))\n"
        "    def yield_one(self):\n        yield 1\n        raise RuntimeError('the camera is off')",
        "bad_generator.py, line 7 with RuntimeError: the camera is off",
    ),
    "operation": (
        "import tensorflow as tf\nclass make:\n    def make_dataset(self):\n"
        "        return tf.data.Dataset.from_tensors(b'no image').map(tf.io.decode_image).batch(1)",
        "Unknown image file format. One of JPEG, JPEG XL, PNG, GIF, BMP, WebP required; check make_dataset "
        "(bad_operation.py, line 3) and the step.",
    ),
    "worker": (
        "import os\nimport tensorflow as tf\nclass make:\n    def make_dataset(self):\n"
        "        return tf.data.Dataset.from_generator(self.work, output_signature=tf.TensorSpec([], tf.int64))\n"
        "    def work(self):\n        yield 1\n        os._exit(0)",
        "Your code called os._exit(0) at bad_worker.py, line 8.",
    ),
    "result": (
        "import tensorflow as tf\nclass make:\n    def make_dataset(self):\n        return tf.data.Dataset.range(9)\n"
        "    def step(self, batch):\n        return object()",
        "step (bad_result.py, line 5) returned an object of type object; it should return a loss",
    ),
}


def _options(folder: Path, target: str, changes: dict[str, Any] | None = None, **workload: Any) -> RunOptions:
    document = own_options(target, str(folder)).model_dump(mode="json")
    document["workload"] |= workload
    document["training"] |= {"steps": 40, "warmup_steps": 2, "calibrate": False, **(changes or {})}
    document["profiling"]["enabled"] = False
    return read_options(document)


def _run(ask_tensorflow, tmp_path: Path, options: RunOptions) -> tuple[str, RunFolder]:
    said = ask_tensorflow("run_own", root=str(tmp_path / "store"), options=options.to_json())
    (folder,) = (tmp_path / "store").iterdir()
    return said, RunFolder(folder)


@pytest.mark.tensorflow
def test_an_own_step_trains_and_its_pipeline_is_described(ask_tensorflow, tmp_path):
    (tmp_path / "own_step.py").write_text(STEP)
    options = _options(tmp_path, "own_step:Job", {"calibrate": True, "steps": 6})
    said, folder = _run(ask_tensorflow, tmp_path, options)
    assert said == ""
    steps = read_table(folder.steps, STEPS)
    assert steps["loss"].to_pylist() == [2, 3, 4, 5, 6, 7, 8, 9], "what the calibration learned was undone"
    assert set(steps["accuracy"].to_pylist()) == {0.5}
    written = read_written(folder.written)
    assert written is not None
    assert ("ParallelMapDatasetV2", "map_double") in [(stage.op, stage.function) for stage in written.stages]
    assert [Path(file.path).name for file in read_files(folder.files)] == ["own_step.py"]
    assert read_record(folder).environment["workload_code"].startswith("own_step.py, SHA-256 ")


@pytest.mark.tensorflow
def test_a_keras_model_trains_as_compiled(ask_tensorflow, tmp_path):
    (tmp_path / "own_model.py").write_text(MODEL)
    options = _options(tmp_path, "own_model:make", {"calibrate": True, "steps": 6}, arguments={"units": 2})
    said, folder = _run(ask_tensorflow, tmp_path, options)
    assert said == ""
    losses = read_table(folder.steps, STEPS)["loss"].to_pylist()
    assert len(losses) == 8
    assert all(math.isfinite(loss) for loss in losses)
    assert losses == sorted(losses, reverse=True), "each batch's own loss, all batches being alike"


@pytest.mark.tensorflow
@pytest.mark.parametrize("loop", ["in_graph", "keras_fit"])
def test_a_keras_model_trains_in_every_loop(ask_tensorflow, tmp_path, loop):
    (tmp_path / f"model_{loop}.py").write_text(MODEL)
    options = _options(tmp_path, f"model_{loop}:make", {"loop": loop, "steps_per_call": 3, "steps": 6})
    said, folder = _run(ask_tensorflow, tmp_path, options)
    assert said == ""
    losses = read_table(folder.steps, STEPS)["loss"].to_pylist()
    assert len(losses) >= 8
    assert losses == sorted(losses, reverse=True), "each batch's own loss, all batches being alike"


@pytest.mark.tensorflow
def test_a_step_function_trains_in_no_graph(ask_tensorflow, tmp_path):
    (tmp_path / "own_loop.py").write_text(STEP)
    said, _ = _run(ask_tensorflow, tmp_path, _options(tmp_path, "own_loop:Job", {"loop": "in_graph"}))
    assert said == (
        "training.loop = in_graph trains a compiled Keras model, but the workload has step (own_loop.py, line 14); give it "
        "a model, or leave training.loop at custom."
    )


@pytest.mark.tensorflow
def test_data_that_end_early_and_an_error_in_a_step_keep_what_was_recorded(ask_tensorflow, tmp_path):
    (tmp_path / "own_end.py").write_text(STEP)
    said, folder = _run(ask_tensorflow, tmp_path / "a", _options(tmp_path, "own_end:Job", preset="short"))
    assert said == ""
    assert read_table(folder.steps, STEPS).num_rows == 10
    (note,) = [event.sentence for event in read_events(folder.events) if isinstance(event, NoteEvent)]
    assert "The data ended after 10 of 42 steps" in note

    said, folder = _run(ask_tensorflow, tmp_path / "b", _options(tmp_path, "own_end:Job", arguments={"fail_at": 37}))
    assert said == "Your code stopped at own_end.py, line 18 with ValueError: the batch is empty."
    assert read_table(folder.steps, STEPS).num_rows == 36


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", BAD)
def test_bad_code_is_named_by_file_and_line(ask_tensorflow, tmp_path, name):
    code, expected = BAD[name]
    (tmp_path / f"bad_{name}.py").write_text(code)
    said, _ = _run(ask_tensorflow, tmp_path, _options(tmp_path, f"bad_{name}:make"))
    assert expected in said


@pytest.mark.tensorflow
def test_a_module_or_preset_that_is_not_there_is_said(ask_tensorflow, tmp_path):
    said, _ = _run(ask_tensorflow, tmp_path / "a", _options(tmp_path, "no_such_module:make"))
    assert said.startswith(f"There is no module no_such_module in {tmp_path}, nor among the installed packages")
    (tmp_path / "own_preset.py").write_text(STEP)
    said, _ = _run(ask_tensorflow, tmp_path / "b", _options(tmp_path, "own_preset:Job", preset="long"))
    assert "has no preset 'long' (it has short)" in said


def test_a_first_batch_that_never_comes_ends_the_job_where_its_code_stands(tmp_path, monkeypatch):
    path, left, said = tmp_path / "endless.py", threading.Event(), []
    monkeypatch.setattr(failures, "_leave", lambda _: left.set())
    path.write_text(
        "def search(begun, found):\n    begun.set()\n    while not found.is_set():\n        found.wait(0.01)\n"
    )
    scope: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), scope)
    begun, found = threading.Event(), threading.Event()
    thread = threading.Thread(target=scope["search"], args=(begun, found), daemon=True)
    thread.start()
    assert begun.wait(PATIENCE_S)
    watch = FirstBatch(0.05, tmp_path, said.append)
    watch.expect("make_dataset (endless.py, line 1)")
    assert left.wait(PATIENCE_S)
    found.set()
    thread.join()
    assert "No batch arrived within 50 ms: Python is at endless.py, line " in str(said[0])

    left.clear()
    FirstBatch(0.05, tmp_path, said.append).expect("make_dataset (endless.py, line 1)")
    assert left.wait(PATIENCE_S)
    assert "none of your Python code runs; check make_dataset (endless.py, line 1)" in str(said[1])


def test_an_arm_whose_turn_comes_later_is_waited_for_from_then_on(tmp_path, monkeypatch):
    left, said = threading.Event(), []
    monkeypatch.setattr(failures, "_leave", lambda _: left.set())
    watch = FirstBatch(PATIENCE_S, tmp_path, said.append)
    watch.expect("make_dataset")
    watch.rest()
    for thread in threading.enumerate():
        if thread.name == "first batch":
            thread.join(PATIENCE_S)
    assert not said
    watch._limit_s = 0.05
    watch.expect("make_dataset")
    assert left.wait(PATIENCE_S)
    assert len(said) == 1


def test_a_first_batch_that_came_ends_nothing(tmp_path):
    said: list[UserCodeError] = []
    watch = FirstBatch(0.01, tmp_path, said.append)
    watch.came()
    watch.expect("")
    assert not said


def test_a_thread_that_leaves_stops_the_job_with_its_line():
    asked, before = [], os._exit
    with pytest.raises(UserCodeError, match=r"called os._exit\(0\) at test_user_code.py, line "):
        _leave_on_a_thread(lambda: asked.append(True))
    assert asked == [True]
    assert os._exit is before


def _leave_on_a_thread(stop: Callable[[], None]) -> None:
    def leave() -> None:
        with contextlib.suppress(UserCodeError):
            os._exit(0)

    with explaining_hard_exits(stop):
        thread = threading.Thread(target=leave)
        thread.start()
        thread.join()


def test_what_is_no_fault_of_the_code_passes(tmp_path):
    with pytest.raises(MemoryError), explaining_errors(tmp_path):
        raise MemoryError
