"""Presets at small size, with the option that tells on and off; the process with TensorFlow is that of the other tests."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pipeline_lab.options.presets import find_preset
from pipeline_lab.options.run_options import set_options
from pipeline_lab.statistics.mixing import expected_same_source, same_source_examples
from pipeline_lab.worker.workloads.data_files import FILE_SHIFT, RECORD_MASK

pytestmark = pytest.mark.tensorflow

Ask = Callable[..., Any]


@pytest.mark.parametrize("preset", ["views-together", "views-apart"])
def test_a_shuffle_behind_views_keeps_them_apart(ask_tensorflow: Ask, preset: str) -> None:
    small = [("workload.examples_per_file", "4x16"), ("pipeline.batch.size", "32"), ("workload.image_size", "24")]
    options = set_options(find_preset(preset).options, small)
    ids = np.array(ask_tensorflow("ids_of", options=options.to_json(), batches=20))
    source = 16 * (ids >> FILE_SHIFT) + (ids & RECORD_MASK) // 10
    shared = same_source_examples(np.repeat(np.arange(20), 32), source.ravel()).mean()
    expected = expected_same_source(32, 64, 10)  # about 12 of 32
    assert shared == pytest.approx(32 if preset == "views-together" else expected, abs=4)
    assert expected < 20


def test_a_table_takes_less_room_than_vectors_in_every_record(ask_tensorflow: Ask) -> None:
    small = [("workload.examples_per_file", "2x40"), ("workload.vector_size", "256")]
    layouts = {name: set_options(find_preset(f"features-{name}").options, small) for name in ("replicated", "lookup")}
    sizes = {name: ask_tensorflow("data_bytes_of", options=options.to_json()) for name, options in layouts.items()}
    vectors_bytes = 4 * 256
    assert sizes["replicated"] > 80 * vectors_bytes  # once for each caption
    assert 4 * vectors_bytes < sizes["lookup"] < sizes["replicated"] - 70 * vectors_bytes  # once for each image
