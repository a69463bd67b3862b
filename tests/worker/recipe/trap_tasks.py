"""What the process with TensorFlow reads of a script."""

import contextlib
import gc
import sys
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from pipeline_lab.capture.sample_script import answer
from pipeline_lab.capture.watch_script import run_script
from pipeline_lab.pipeline.samples import SampleRequest
from pipeline_lab.worker.recipe import wrapping
from pipeline_lab.worker.recipe.notes import Ledger


def read_script(**request: Any) -> dict[str, Any]:
    """Read a script's dataset in this process, which is as it was afterwards."""
    with _as_in_a_process_of_its_own():
        return answer(SampleRequest(**request))


def recipe_of_script(path: str) -> str:
    """Run a script to its end, and return its recipe as JSON."""
    from pipeline_lab.capture.script.live_iterators import note_new_iterators
    from pipeline_lab.capture.script.noted_datasets import note_new_datasets

    note_new_iterators()
    note_new_datasets()
    with _as_in_a_process_of_its_own():
        run_script(path, [])
        return wrapping.ledger.recipe().to_json()


@contextlib.contextmanager
def _as_in_a_process_of_its_own() -> Iterator[None]:
    """Let a script find a new process, without notes of others and without a seed, and leave none of it behind."""
    kept = wrapping.ledger, sys.modules["__main__"], sys.argv[:], sys.path[:]
    wrapping.ledger = Ledger()
    tf.random.set_seed(None)
    try:
        yield
    finally:
        gc.unfreeze()
        tf.random.set_seed(None)
        wrapping.ledger, sys.modules["__main__"], sys.argv[:], sys.path[:] = kept
