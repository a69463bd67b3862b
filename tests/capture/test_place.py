import json

import pytest

from pipeline_lab.capture.place import Place, find_place


def test_a_process_that_nobody_launched_is_alone() -> None:
    assert find_place({}) == Place(0, 1, "")
    assert find_place({}).label == ""


@pytest.mark.parametrize(
    "environment",
    [
        {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4", "PMIX_NAMESPACE": "job-7"},
        {"PMI_RANK": "2", "PMI_SIZE": "4", "PMI_JOBID": "job-7"},
        {"SLURM_PROCID": "2", "SLURM_NTASKS": "4", "SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0"},
    ],
)
def test_launchers_say_which_process_it_is(environment: dict[str, str]) -> None:
    place = find_place(environment)
    assert (place.rank, place.size, place.label) == (2, 4, ".rank2")
    assert "7" in place.job


def test_tf_config_counts_the_chief_first() -> None:
    cluster = {"worker": ["a:1", "b:1"], "chief": ["c:1"], "ps": ["d:1"]}
    places = {
        (kind, index): find_place(
            {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})}
        )
        for kind, index in (("chief", 0), ("worker", 0), ("worker", 1), ("ps", 0))
    }
    assert [places[key].rank for key in (("chief", 0), ("worker", 0), ("worker", 1))] == [0, 1, 2]
    assert len({places[key].job for key in (("chief", 0), ("worker", 0), ("worker", 1))}) == 1
    assert places["ps", 0] == Place()


@pytest.mark.parametrize(
    "environment",
    [
        {"TF_CONFIG": "no json"},
        {"TF_CONFIG": '{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 0}}'},
        {"SLURM_PROCID": "0", "SLURM_NTASKS": "1"},
        {"PMI_RANK": "9", "PMI_SIZE": "4"},
        {"PMI_RANK": "two", "PMI_SIZE": "4"},
    ],
)
def test_what_names_no_group_leaves_the_process_alone(environment: dict[str, str]) -> None:
    assert find_place(environment) == Place()


def test_a_job_can_be_named_by_hand() -> None:
    assert find_place({"PMI_RANK": "0", "PMI_SIZE": "2", "PIPELINE_LAB_JOB": "mine"}).job == "mine"
