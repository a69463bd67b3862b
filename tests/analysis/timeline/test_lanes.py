"""Nested and overlapping events are laid in layers that hold no overlaps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_lab.analysis.timeline import lanes
from pipeline_lab.analysis.timeline.lanes import find_layers

EVENTS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 30)), max_size=40)


def test_a_call_lies_under_its_caller():
    start, end = np.array([5, 0, 12, 20]), np.array([9, 10, 15, 30])
    layers, deeper = find_layers(start, end)
    assert [layer.tolist() for layer in layers] == [[1, 2, 3], [0]]
    assert deeper == 0


@pytest.mark.slow
@given(EVENTS)
def test_every_event_lies_in_one_layer_and_none_overlaps_another_there(events):
    start = np.array([begin for begin, _ in events], np.int64)
    end = start + np.array([length for _, length in events], np.int64)
    layers, deeper = find_layers(start, end)
    shown = np.concatenate([np.empty(0, np.int64), *layers]).tolist()
    assert len(set(shown)) == len(shown) == len(events) - deeper
    assert set(shown) <= set(range(len(events)))
    for layer in layers:
        assert (start[layer][1:] >= end[layer][:-1]).all()


def test_what_is_nested_too_deep_is_counted(monkeypatch):
    monkeypatch.setattr(lanes, "MAX_LAYERS", 2)
    start, end = np.arange(5), 20 - np.arange(5)
    layers, deeper = find_layers(start, end)
    assert (len(layers), deeper) == (2, 3)
