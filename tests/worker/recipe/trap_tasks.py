"""What the process with TensorFlow reads of a script."""

import contextlib
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from pipeline_lab.capture.script.live_iterators import note_new_iterators
from pipeline_lab.capture.script.noted_datasets import note_new_datasets
from pipeline_lab.capture.script_sample.sample_reader import RandomStates, measure_stages, read_sample
from pipeline_lab.capture.script_sample.stopped_script import answer, read_request
from pipeline_lab.capture.watch_script import run_script
from pipeline_lab.pipeline.recipe import LOOP
from pipeline_lab.pipeline.samples import ReadingPlace, SampleRequest
from pipeline_lab.pipeline.written_changes import parse_change
from pipeline_lab.worker.recipe import wrapping
from pipeline_lab.worker.recipe.changed import NotedDatasets, change_dataset
from pipeline_lab.worker.recipe.notes import Ledger
from pipeline_lab.worker.recipe.replaying import keep_calls


def read_script(**request: Any) -> dict[str, Any]:
    """Read a script's dataset in this process, which is as it was afterwards."""
    with as_in_a_process_of_its_own():
        return answer(read_request(request), Path(tempfile.mkdtemp()))


def recipe_of_script(path: str) -> str:
    """Run a script to its end, and return its recipe as JSON."""
    note_new_iterators()
    note_new_datasets()
    with as_in_a_process_of_its_own():
        run_script(path, [])
        return wrapping.ledger.recipe().to_json()


def passes_of_draws(elements: int, *, of: str, is_seeded: bool) -> Any:
    """Return what two passes hold that are broken off, over random numbers of a generator."""
    random.seed(None)  # another script in this process may have left the states where the reader sets them after a pass
    np.random.seed(None)
    if of == "Keras":
        state = keras.random.SeedGenerator(3)
        dataset = tf.data.Dataset.range(99).map(lambda _: keras.random.uniform([1], seed=state), num_parallel_calls=1)
    else:
        draw = {"Python": random.random, "NumPy": np.random.random}[of]
        numbers = tf.TensorSpec([], tf.float64)
        dataset = tf.data.Dataset.from_generator(lambda: (draw() for _ in range(99)), output_signature=numbers)
        dataset = dataset.prefetch(50)
    with tempfile.TemporaryDirectory() as folder:
        reading, values = ReadingPlace(LOOP), f"{folder}/values.npz"
        request = SampleRequest("", [], False, {}, reading, elements, 60.0, values, 60.0, is_seeded=is_seeded)
        return read_sample(dataset, request, leave_off=RandomStates(request).leave_off).passes


def sizes_of_stages(folder: str) -> dict[str, Any]:
    """Return how many elements each stage has of a dataset of files of unknown length, and how often its slow function was called for it."""
    called: list[int] = []
    file = Path(folder, "lines.txt")
    file.write_text("a line\n" * 2500)

    def look(line: bytes) -> np.int64:
        called.append(len(line))
        return np.int64(len(line))

    note_new_datasets()
    dataset = tf.data.Dataset.from_tensors(str(file)).flat_map(tf.data.TextLineDataset)
    dataset = dataset.filter(lambda line: line != "another")
    dataset = dataset.map(lambda line: tf.numpy_function(look, [line], tf.int64, stateful=False)).shuffle(100)
    with as_in_a_process_of_its_own():
        return {"elements": [each.elements for each in measure_stages(dataset)], "called": len(called)}


def elements_as_raced(path: str, change: str) -> list[Any]:
    """Return the elements that a script trains on as it is, and as a race changes it."""
    note_new_iterators()
    note_new_datasets()
    keep_calls()
    try:
        with as_in_a_process_of_its_own(), tempfile.TemporaryDirectory() as scratch:
            run_script(path, [])
            noted = NotedDatasets(*wrapping.ledger.noted())
            assert noted.recipe.trained is not None
            dataset = noted.notes[noted.recipe.trained.call].dataset
            edits = parse_change(noted.recipe, change).edits
            arms = (dataset, change_dataset(dataset, noted, edits, Path(scratch)))
            return [[_plain(element) for element in arm] for arm in arms]
    finally:
        keep_calls(keeps=False)


def _plain(element: Any) -> list[Any]:
    return [str(part.numpy().tolist()) for part in tf.nest.flatten(element)]


@contextlib.contextmanager
def as_in_a_process_of_its_own() -> Iterator[None]:
    """Let a script find a new process, without notes of others and without a seed, and leave none of it behind."""
    kept = wrapping.ledger, sys.modules["__main__"], sys.argv[:], sys.path[:]
    wrapping.ledger = Ledger()
    tf.random.set_seed(None)
    try:
        yield
    finally:
        tf.random.set_seed(None)
        wrapping.ledger, sys.modules["__main__"], sys.argv[:], sys.path[:] = kept
