"""How the machines of a cluster are divided up among trials."""

import os
import sys
from pathlib import Path

import pytest

from pipeline_lab.errors import OptionsError
from pipeline_lab.options.tune_options import read_tune_options
from pipeline_lab.runs.launch.queue import MeasurementLock
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.run_folder import read_record
from pipeline_lab.runs.store import RunStore
from pipeline_lab.tuning.executors.ray_trial import Node, Slot, find_slots, measure, share_of, unpack
from tests.support.true_times import NAIVE
from tests.support.worlds import tune_options

EIGHT, ONE, NONE = Node("a", 64.0, 8.0), Node("b", 16.0, 1.0), Node("c", 32.0, 0.0)


def test_a_trial_has_a_machine_to_itself_unless_told_otherwise():
    assert find_slots([EIGHT, NONE], None) == [Slot("a", 0, 1, 64.0, 8.0), Slot("c", 0, 1, 32.0, 0.0)]


def test_each_gpu_measures_a_trial_with_its_share_of_the_cores():
    slots = find_slots([EIGHT, ONE], 1)
    assert [(slot.node_id, slot.number) for slot in slots] == [*(("a", number) for number in range(8)), ("b", 0)]
    assert {(slot.of, slot.cpus, slot.gpus) for slot in slots if slot.node_id == "a"} == {(8, 8.0, 1.0)}
    assert slots[-1] == Slot("b", 0, 1, 16.0, 1.0)


def test_machines_with_too_few_gpus_measure_nothing():
    assert {slot.node_id for slot in find_slots([EIGHT, ONE, NONE], 2)} == {"a"}
    assert len(find_slots([EIGHT], 3)) == 2
    assert find_slots([NONE], 1) == [Slot("c", 0, 1, 32.0, 0.0)]  # no GPU anywhere: whole machines
    assert len(find_slots([Node("d", 4.0, 8.0)], 1)) == 4  # a trial needs a core


def test_shares_of_the_cores_do_not_overlap():
    cores = [7, 1, 2, 3, 4, 5, 6, 0]
    shares = [share_of(cores, number, 3) for number in range(3)]
    assert shares == [[0, 1], [2, 3], [4, 5]]
    assert share_of(cores, 0, 1) == list(range(8))
    assert share_of([3], 1, 2) == [3]


@pytest.mark.slow
def test_a_share_of_a_machine_has_its_own_cores_and_its_own_queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The measurement lock of the whole machine is held by somebody else; the share does not wait for it."""
    worker = Path(__file__).parents[2] / "support" / "sharing_worker.py"
    monkeypatch.setenv("PIPELINE_LAB_WORKER", f"{sys.executable} {worker}")
    whole = MeasurementLock()
    assert whole.acquire()
    try:
        answer = measure(NAIVE.model_dump(mode="json"), number=1, of=2)
    finally:
        whole.close()
    folder = unpack(answer.archive, RunStore(tmp_path / "store"), answer.run_id)
    assert read_record(folder).status.state is RunState.DONE
    told = (folder.path / "cores").read_text()
    assert told == str(share_of(sorted(os.sched_getaffinity(0)), 1, 2))


def test_only_a_cluster_is_divided_up():
    with pytest.raises(OptionsError, match="name the cluster with ray"):
        read_tune_options(tune_options().model_dump(mode="json") | {"gpus_per_trial": 1})
