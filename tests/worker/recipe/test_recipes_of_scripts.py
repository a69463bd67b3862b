"""What is noted of every way to make and to read a dataset, by TensorFlow itself."""

import linecache
from typing import Any

import pytest

from pipeline_lab.worker.recipe import places
from tests.support.warm_worker import warm_worker

pytestmark = pytest.mark.tensorflow


@pytest.fixture(name="noted", scope="module")
def _noted(_own_folders: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    log = tmp_path_factory.mktemp("noted") / "log"
    with warm_worker("tests.worker.recipe.recipe_tasks", {}, log) as ask:  # where nothing is noted yet
        found: dict[str, Any] = ask("note_made_datasets")
    return found


def test_every_method_that_makes_a_dataset_is_tried(noted: dict[str, Any]) -> None:
    tried = {method for case in noted["made"].values() for method in case["expected"]}
    assert set(noted["methods"]) - tried == set()


def test_each_dataset_carries_the_calls_that_made_it(noted: dict[str, Any]) -> None:
    wrong = {name: case for name, case in noted["made"].items() if not case["expected"][0].startswith("*")}
    found = {name: case["methods"] for name, case in wrong.items()}
    assert found == {name: case["expected"] for name, case in wrong.items()}


def test_what_a_library_makes_lies_on_the_line_that_calls_the_library(noted: dict[str, Any]) -> None:
    cases = {case["expected"][0][1:]: case for case in noted["made"].values() if case["expected"][0].startswith("*")}
    for function, case in cases.items():
        assert function in case["texts"][0]
        assert case["lines"][0].lstrip().startswith("return ")
        assert function in case["lines"][0]


def test_every_call_has_its_line_and_names_the_datasets_in_a_trace(noted: dict[str, Any]) -> None:
    for name, case in noted["made"].items():
        assert all(case["lines"]), name
    assert noted["made"]["simple_map"]["nodes"][0] == "ParallelMapDataset"
    assert noted["made"]["zipped"]["nodes"] == ["ZipDataset", "RangeDataset", "MapDataset", "RangeDataset"]


def test_elements_types_and_signatures_are_those_of_tensorflow(noted: dict[str, Any]) -> None:
    for case in noted["made"].values():
        assert case["elements"] == case["elements_before"]
        assert case["kind"] == case["kind_before"]
    assert noted["signatures"] == noted["signatures_before"]


def test_snapshots_and_the_service_know_a_dataset_by_the_same_fingerprint(noted: dict[str, Any]) -> None:
    before, after = noted["fingerprints_before"], noted["fingerprints"]
    # not those that draw their own seeds, or hold several functions, which TensorFlow takes in the order of their running numbers,
    # nor what is read as a snapshot, which has another one from time to time with TensorFlow alone
    unstable = ("simple_group_by_window", "simple_snapshot")
    stable = [name for name in before if before[name] and after[name] and name not in unstable]
    assert [name for name in stable if before[name] != after[name]] == []
    assert len(stable) > 30
    assert noted["snapshots"] == 1, "a snapshot of a run without us is read again"


def test_an_error_is_the_one_of_tensorflow_with_one_frame_more(noted: dict[str, Any]) -> None:
    before, after = noted["error_before"], noted["error"]
    assert after["text"] == before["text"]
    assert after["frames"] <= before["frames"] + 1


def test_what_datasets_are_read_for_is_told_apart(noted: dict[str, Any]) -> None:
    assert noted["uses"] == [
        ["training", "model.fit(x, y, batch_size=2, verbose=0, validation_data=(x…", "prefetch", []],
        ["validation", "model.fit(x, y, batch_size=2, verbose=0, validation_data=(x…", "prefetch", []],
        ["training", "model.fit(Images(), verbose=0)", "prefetch", ["PyDataset Images.__getitem__"]],
        ["training", "model.fit(batches(), verbose=0)", "prefetch", ["generator batches"]],
        ["prediction", "model.predict(x, verbose=0)", "prefetch", []],
        ["adapting", ".adapt(Data.from_tensors(x))", "from_tensors", []],
        ["loop", ".map(lambda number: through_python(number))", "map", ["numpy_function scale"]],
        ["loop", ".map(through_made_python)", "map", ["numpy_function scaling.<locals>.times"]],
        ["loop", "add_up(numbers().skip(1))", "skip", []],
    ]


def test_how_epochs_end_says_whether_workers_would_carry_batches_over(noted: dict[str, Any]) -> None:
    assert noted["carried_over"] == {
        "all": {"training": ""},
        "as many": {"training": ""},
        "fewer": {"training": places.ENDS_ELSEWHERE},
        "more": {"training": places.ENDS_ELSEWHERE},
        "fewer in validation": {"training": "", "validation": places.ENDS_ELSEWHERE},
        "growing": {"training": places.ENDS_ELSEWHERE},
        "endless": {"training": places.ENDS_ELSEWHERE},
        "under a strategy": {"training": places.PEEKS},
        "a dataset": {"training": None},
    }


def test_python_inside_of_a_function_that_was_rewritten_is_told_by_the_users_file(noted: dict[str, Any]) -> None:
    (place,) = {tuple(place) for place in noted["python_places"]}
    assert place[0].endswith("made_datasets.py")
    assert linecache.getline(place[0], place[1]).strip() == "return number * factor"


def test_threads_copies_and_errors_leave_everything_in_order(noted: dict[str, Any]) -> None:
    assert noted["in_threads"] == [["batch", "map", "range"]] * 8
    assert noted["copied"] == [[0, 1], [0, 1]]
    assert noted["after_errors"] == 0
    assert noted["freed"], "a note must not keep the user's data alive"


def test_a_dataset_of_any_kind_is_made_again_with_its_calls_and_elements(noted: dict[str, Any]) -> None:
    for name, again in noted["replayed"].items():
        shared = {"is_other": False} if name in ("slices", "tensors", "experimental") else {"is_other": True}
        assert again == {**shared, "has_notes": True, "elements": noted["made"][name]["elements"]}, name


def test_a_dataset_is_made_again_with_changes_that_leave_the_scripts_own_alone(noted: dict[str, Any]) -> None:
    edited = noted["edited"]
    assert (edited["script's"], edited["kind"], edited["given"]) == ("_MapDataset", "_ParallelMapDataset", 2)
    assert edited["left out"] == [0, 1, 2]
    assert edited["appended"] == "_PrefetchDataset"
    assert edited["shuffled"] == list(range(1, 9))
    assert edited["inside"] == [[1, 1, 2, 2], [1, 2]]
    assert edited["in two places"] == [[0, 0], [1, 1], [2, 2]]
    assert edited["seed"][0] == edited["seed"][1], "the script's random numbers are those of a run without us"


def test_what_cannot_be_made_again_is_refused_with_a_reason(noted: dict[str, Any]) -> None:
    unmet, unfit = noted["edited"]["refused"]
    assert "No call of elsewhere" in unmet
    assert ".map(made_datasets.add_one)" in unfit
    assert "calls" in unfit
    assert "in a way that is not known" in noted["edited"]["unknown"]
    assert noted["edited"]["array"] == ""
    assert "what it was given is not kept" in noted["edited"]["changed array"]
