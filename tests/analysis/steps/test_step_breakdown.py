"""Parts of steps that add up to them, in one trace and in several."""

import numpy as np
import pyarrow as pa
import pytest

from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.steps.step_breakdown import PARTS, PARTS_TABLE, StepBreakdown, merge_breakdowns, sum_up


def steps_of(*lengths_ns: int, start_ns: int = 0, **parts_ns: list[int]) -> pa.Table:
    """Return steps one after another with these parts; whatever is not named is 0."""
    ends = start_ns + np.cumsum(lengths_ns)
    return tables.build(
        PARTS_TABLE,
        len(lengths_ns),
        host="a",
        window=0,
        step=np.arange(len(lengths_ns)),
        start_ns=ends - np.array(lengths_ns),
        end_ns=ends,
        **{part: parts_ns.get(part, 0) for part in PARTS},
    )


SOUND = steps_of(10, 20, input_wait_ns=[4, 5], python_ns=[6, 15])


def test_parts_of_sound_steps_add_up():
    found = sum_up(SOUND)
    assert found.adds_up
    assert (found.input_wait_ns, found.python_ns, found.total_ns) == (9, 21, 30)


@pytest.mark.parametrize(
    "damaged",
    [
        steps_of(10, 20, input_wait_ns=[4, 5], python_ns=[6, 14]),
        steps_of(10, 20, input_wait_ns=[3, 6], python_ns=[6, 15]),
        steps_of(10, 20, input_wait_ns=[-1, 5], python_ns=[11, 15]),
    ],
    ids=["too short", "only in sum", "less than nothing"],
)
def test_parts_of_damaged_steps_do_not_add_up(damaged: pa.Table):
    assert not sum_up(damaged).adds_up


def test_steps_of_several_traces_are_added_up_as_if_they_were_of_one():
    later = steps_of(7, start_ns=100, checkpoint_ns=[7])
    merged = merge_breakdowns([sum_up(SOUND), sum_up(later)])
    whole = sum_up(pa.concat_tables([SOUND, later]))
    assert merged.parts_ns == whole.parts_ns
    assert merged.table.equals(whole.table.combine_chunks())
    assert merged.adds_up


def test_one_damaged_trace_damages_the_whole():
    damaged = sum_up(steps_of(7, start_ns=100))
    assert not merge_breakdowns([sum_up(SOUND), damaged]).adds_up
    assert not merge_breakdowns([damaged, sum_up(SOUND)]).adds_up
    assert StepBreakdown().adds_up
