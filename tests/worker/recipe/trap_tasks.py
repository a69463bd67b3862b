"""What the process with TensorFlow reads of a script."""

import sys
from typing import Any

from pipeline_lab.capture.sample_script import answer
from pipeline_lab.capture.watch_script import run_script
from pipeline_lab.pipeline.samples import SampleRequest
from pipeline_lab.worker.recipe import wrapping
from pipeline_lab.worker.recipe.notes import Ledger


def read_script(**request: Any) -> dict[str, Any]:
    """Read a script's dataset in this process, which is as it was afterwards."""
    kept = wrapping.ledger, sys.modules["__main__"], sys.argv[:], sys.path[:]
    wrapping.ledger = Ledger()
    try:
        return answer(SampleRequest(**request))
    finally:
        wrapping.ledger, sys.modules["__main__"], sys.argv[:], sys.path[:] = kept


def recipe_of_script(path: str) -> str:
    """Run a script to its end, and return its recipe as JSON."""
    from pipeline_lab.capture.script.live_iterators import note_new_iterators
    from pipeline_lab.capture.script.noted_datasets import note_new_datasets

    note_new_iterators()
    note_new_datasets()
    kept = wrapping.ledger, sys.modules["__main__"], sys.argv[:], sys.path[:]
    wrapping.ledger = Ledger()
    try:
        run_script(path, [])
        return wrapping.ledger.recipe().to_json()
    finally:
        wrapping.ledger, sys.modules["__main__"], sys.argv[:], sys.path[:] = kept
