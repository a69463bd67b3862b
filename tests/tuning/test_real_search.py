"""A whole search with the real worker and the real model, as small as it gets."""

import pytest

from pipeline_lab import tune
from pipeline_lab.options.run_options import set_options
from pipeline_lab.tuning.history import Profiled, Proposed
from tests.support.lab import Lab
from tests.support.true_times import NAIVE

pytestmark = pytest.mark.tensorflow

ONLY = {"map calls": ("1", "8"), "pool threads": ("default", "8"), "prefetch": ("none", "2")}


def test_a_search_makes_a_slow_pipeline_faster(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIPELINE_LAB_WORKER")
    start = set_options(NAIVE, [("workload.map_ms", "1.5")])  # 24 ms of waiting and 10 ms of training, in turns
    found = tune(start, store=lab.store, only=ONLY, max_configurations=2, budget_s=200.0, pairs=8, block_steps=4)
    profiled, proposed = found.steps[:2]
    assert isinstance(profiled, Profiled)
    assert isinstance(proposed, Proposed)
    assert profiled.step_ms is not None
    assert proposed.looked_at == 8
    assert found.winner_name == "map calls 8, pool threads 8, prefetch 2"
    assert found.ended is not None
    assert found.ended.ratio is not None
    assert found.ended.ratio < 0.8
    assert found.ended.predicted is not None
    assert "prefetch(2)" in found.source
