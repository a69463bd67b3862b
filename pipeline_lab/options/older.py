"""Options documents of earlier versions, brought to today's fields so that runs recorded then still open."""

from typing import Any


def renew(document: Any) -> Any:
    """Return a document with every field where it is now; what is none of ours stays for the validator to refuse.

    - ``workload.replicas`` of the sparse workload is ``training.replicas``.
    - A synthetic workload's ``varied_lengths`` was batched by a ``batch`` stage without a mode; it is padded now.
    """
    if not isinstance(document, dict) or not isinstance(document.get("workload"), dict):
        return document
    workload = document["workload"]
    if workload.get("kind") == "sparse" and "replicas" in workload:
        return _move_replicas(document)
    if workload.get("kind") == "synthetic" and workload.get("varied_lengths") and "schema_version" in document:
        return _pad(document)
    return document


def _move_replicas(document: dict[str, Any]) -> dict[str, Any]:
    workload, training = dict(document["workload"]), document.get("training", {})
    if not isinstance(training, dict) or "replicas" in training:
        return document
    return {**document, "training": {**training, "replicas": workload.pop("replicas")}, "workload": workload}


def _pad(document: dict[str, Any]) -> dict[str, Any]:
    """Pad where a document that was written whole says nothing of a mode, as documents do since there are modes."""
    pipeline = document.get("pipeline")
    if not isinstance(pipeline, dict) or not isinstance(pipeline.get("stages"), list):
        return document
    return {**document, "pipeline": {**pipeline, "stages": [_padded(stage) for stage in pipeline["stages"]]}}


def _padded(stage: Any) -> Any:
    if not isinstance(stage, dict) or stage.get("stage") != "batch" or "mode" in stage:
        return stage
    return {**stage, "mode": "padded_batch", "num_parallel_calls": None, "deterministic": None}
