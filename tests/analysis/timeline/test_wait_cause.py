"""The event that a wait was for: of the stage that the critical path blames, on the thread where it worked."""

from dataclasses import replace

import pytest

from pipeline_lab.analysis.tf_data.tf_data import OWN_WORK, UNSEEN, CriticalPath, PathShare
from pipeline_lab.analysis.timeline.look import rank_operations
from pipeline_lab.analysis.timeline.wait_cause import find_cause
from pipeline_lab.errors import Unavailable
from tests.support import results
from tests.support.timelines import MS, make_timeline

WAIT = (100 * MS, 140 * MS)
MAP = "Map"


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return make_timeline(tmp_path_factory.mktemp("timeline"))[0]


def cause(index, *shares: tuple[int | None, str, int], span=WAIT):
    """Find the cause of a wait, the critical path being (stage, what, ms)."""
    path = CriticalPath(0, 0, tuple(PathShare(stage, what, ms * MS, ms * MS) for stage, what, ms in shares))
    total = sum(share.wait_ns for share in path.shares)
    pipeline = results.tf_data()
    stages = tuple(replace(stage, path=MAP) for stage in pipeline.stages)
    blamed = replace(pipeline, stages=stages, critical_path=replace(path, wait_ns=total, exposed_ns=total))
    ranked = rank_operations(index, index.lanes[0].host, span, ("training", "tf.data", "other"))
    return find_cause(index, blamed, index.lanes[0].host, span, ranked)


def test_a_wait_for_an_op_leads_to_the_op(index):
    found = cause(index, (0, "DecodeJpeg", 60), (0, OWN_WORK, 20))
    assert (found.event.start_ns, found.event.duration_ns, found.time_ns, found.path) == (
        105 * MS,
        20 * MS,
        20 * MS,
        MAP,
    )
    assert index.names[found.event.name] == "map/decode:DecodeJpeg"


def test_a_wait_for_a_stage_itself_leads_to_its_event_on_the_thread_where_it_fills_most(index):
    found = cause(index, (None, UNSEEN, 90), (0, OWN_WORK, 60))
    assert (found.event.start_ns, found.time_ns) == (100 * MS, 35 * MS)
    assert index.names[found.event.name] == "Iterator::Map"


def test_what_did_not_work_during_the_wait_is_not_its_cause(index):
    assert cause(index, (0, "PyFunc", 60), (0, "DecodeJpeg", 50)).event.start_ns == 105 * MS
    assert cause(index, (0, "PyFunc", 60)) is None
    assert cause(index, (0, "DecodeJpeg", 60), span=(124 * MS, 140 * MS)) is None, "1 of 16 ms"


@pytest.mark.slow
def test_what_is_little_of_the_critical_path_is_not_blamed_for_a_wait(index):
    assert cause(index, (0, "PyFunc", 95), (0, "DecodeJpeg", 5)) is None


def test_without_a_critical_path_nothing_is_blamed(index):
    none = Unavailable("no tf.data")
    assert find_cause(index, none, "host", WAIT, []) is None
    assert find_cause(index, replace(results.tf_data(), critical_path=none), "host", WAIT, []) is None
