"""Runs in a process that has TensorFlow loaded, for tests of calls of ``predict``."""

from pathlib import Path
from typing import Any

from pipeline_lab.capture.script_sample.stopped_script import answer
from pipeline_lab.pipeline.predict_samples import PredictRequest
from tests.worker.recipe.trap_tasks import as_in_a_process_of_its_own


def run_predicts(**request: Any) -> dict[str, Any]:
    """Answer what is asked about a script's calls of ``predict``."""
    with as_in_a_process_of_its_own():
        return answer(PredictRequest(**request), Path(request["target"]).parent / "files")
