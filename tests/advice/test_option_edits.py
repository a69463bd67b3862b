"""Remarks on a pipeline's order, cured: the cured pipeline has the remark no more."""

from typing import Any

import pytest

from pipeline_lab.advice.option_edits import ORDER_FIXES, fix_order
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.pipeline.lint import lint_pipeline
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.workloads.images import ImagesWorkload

READ, PARSE, AUGMENT, SHUFFLE, REPEAT, CACHE = (
    {"stage": name} for name in ("read", "parse", "augment", "shuffle", "repeat", "cache")
)
BATCH, PREFETCH = {"stage": "batch", "size": 8}, {"stage": "prefetch", "buffer_size": 2}
TROUBLES: dict[str, list[dict[str, Any]]] = {
    "no-prefetch": [READ, SHUFFLE, REPEAT, PARSE, BATCH],
    "prefetch-not-last": [READ, REPEAT, PARSE, PREFETCH, BATCH],
    "serial-stage": [READ, REPEAT, PARSE, BATCH, PREFETCH],
    "small-pool": [READ, REPEAT, {**PARSE, "num_parallel_calls": 8}, BATCH, PREFETCH],
    "frozen-augmentation": [READ, PARSE, AUGMENT, CACHE, SHUFFLE, REPEAT, BATCH, PREFETCH],
    "endless-cache": [READ, REPEAT, PARSE, CACHE, BATCH, PREFETCH],
    "frozen-order": [READ, SHUFFLE, CACHE, REPEAT, PARSE, BATCH, PREFETCH],
    "mixed-epochs": [READ, REPEAT, SHUFFLE, PARSE, BATCH, PREFETCH],
    "shuffled-batches": [READ, REPEAT, BATCH, SHUFFLE, PARSE, PREFETCH],
    "decoded-shuffle": [READ, PARSE, SHUFFLE, REPEAT, BATCH, PREFETCH],
}


def pipeline(kind: str) -> RunOptions:
    stages = PipelineOptions.model_validate(
        {
            "stages": TROUBLES[kind],
            "tensorflow_rewrites": False,
            "private_threadpool_size": 2 if kind == "small-pool" else None,
        }
    )
    return RunOptions(workload=ImagesWorkload(data="random"), pipeline=stages)


def test_every_cure_has_its_trouble():
    assert set(ORDER_FIXES) == set(TROUBLES)


@pytest.mark.parametrize("kind", TROUBLES)
def test_a_cure_cures(kind: str):
    sick = pipeline(kind)
    finding = next(found for found in lint_pipeline(sick) if found.kind == kind)
    cured = fix_order(sick, finding)
    assert cured is not None
    assert kind not in [found.kind for found in lint_pipeline(cured)]
    assert sorted(stage.stage for stage in cured.pipeline.stages if stage.stage != "prefetch") == sorted(
        stage.stage for stage in sick.pipeline.stages if stage.stage != "prefetch"
    )


def test_facts_have_no_cure():
    sick = pipeline("serial-stage")
    assert all(fix_order(sick, found) is None for found in lint_pipeline(sick) if found.kind not in ORDER_FIXES)
