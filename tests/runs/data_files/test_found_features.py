import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_lab.errors import DataError, OptionsError
from pipeline_lab.runs.data_files.found_features import (
    FoundFeature,
    NoExampleError,
    find_features,
    find_misfitting_record,
    infer_features,
    suggest_options,
)
from pipeline_lab.workloads.records import RecordFeature, format_features, parse_features
from tests.runs.data_files.test_tfrecord import write_records
from tests.support.examples import example, floats, int64s, strings

WHOLE = example(label=int64s(3), tokens=int64s(1, 300, -1), vector=floats(0.5, 2), text=strings(b"a", b""))
EXPECTED = parse_features("label:int64, vector:float32[2], tokens:int64[*]")


def test_an_example_is_taken_apart() -> None:
    assert find_features(WHOLE) == {
        "label": FoundFeature("int64", 1),
        "tokens": FoundFeature("int64", 3),
        "vector": FoundFeature("float32", 2),
        "text": FoundFeature("bytes", 2),
    }
    assert find_features(b"") == {}
    assert find_features(example(none=b"", empty=int64s())) == {
        "none": FoundFeature(None, 0),
        "empty": FoundFeature("int64", 0),
    }


@given(st.binary(max_size=60))
def test_other_bytes_are_no_example_but_never_a_crash(record: bytes) -> None:
    with contextlib.suppress(NoExampleError):
        find_features(record)


@given(st.integers(0, len(WHOLE) - 1))
def test_an_example_that_was_cut_is_none(length: int) -> None:
    if length:
        with pytest.raises(NoExampleError):
            find_features(WHOLE[:length])


def test_features_are_inferred_from_all_that_was_looked_at(tmp_path: Path) -> None:
    write_records(tmp_path / "a", [WHOLE, example(label=int64s(1), vector=floats(1, 2), tokens=int64s(7))])
    write_records(tmp_path / "b", [example(label=int64s(1), vector=floats(1, 2), rare=strings(b"x"), none=b"")])
    found = format_features(infer_features(str(tmp_path / "*")))
    assert found == "label:int64, tokens:int64[*], vector:float32[2], text:bytes[*], rare:bytes[*]"


def test_options_are_suggested_that_run(tmp_path: Path) -> None:
    write_records(tmp_path / "a", [WHOLE])
    options = suggest_options(str(tmp_path / "*"))
    assert options.workload.label == "label"
    write_records(tmp_path / "a", [example(label=int64s(1))])
    assert suggest_options(str(tmp_path / "*")).workload.label is None  # there would be nothing to tell it from


@pytest.mark.parametrize("name", ["a,b", "a:int64,b", " a"])
def test_a_name_that_options_cannot_be_written_with_is_refused(tmp_path: Path, name: str) -> None:
    write_records(tmp_path / "a", [example(**{name: int64s(1)})])
    with pytest.raises(DataError, match=f"The feature name {name!r} cannot be written"):
        suggest_options(str(tmp_path / "*"))


def test_more_features_than_options_may_name_are_refused(tmp_path: Path) -> None:
    write_records(tmp_path / "a", [example(**{f"f{number}": int64s(1) for number in range(201)})])
    with pytest.raises(DataError, match="The records have 201 features, more than 200; list the ones"):
        suggest_options(str(tmp_path / "*"))


def test_names_too_long_for_options_are_refused_in_a_sentence(tmp_path: Path) -> None:
    write_records(tmp_path / "a", [example(**{"f" * 20_001: int64s(1)})])
    with pytest.raises(OptionsError, match=r"workload\.features should be text of at most 20000 characters"):
        suggest_options(str(tmp_path / "*"))


def test_types_that_disagree_are_told_with_their_record(tmp_path: Path) -> None:
    write_records(tmp_path / "a", [example(x=int64s(1)), example(x=floats(1))])
    with pytest.raises(DataError, match=r"The feature 'x' is float32 in record 1 of .*a, but int64 in earlier ones"):
        infer_features(str(tmp_path / "*"))


def test_files_without_examples_say_so(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="No file matches"):
        infer_features(str(tmp_path / "*"))
    write_records(tmp_path / "a", [])
    with pytest.raises(DataError, match=r"The files that match .* contain no record"):
        infer_features(str(tmp_path / "*"))
    write_records(tmp_path / "a", [WHOLE, b"\xff" * 20])
    with pytest.raises(DataError, match=r"Record 1 of .*a is not a tf.train.Example"):
        infer_features(str(tmp_path / "*"))


@pytest.mark.parametrize(
    ("record", "trouble"),
    [
        (example(vector=floats(1, 2)), "has no feature 'label', which every record must hold"),
        (example(label=floats(1), vector=floats(1, 2)), "has the feature 'label' as float32, not as int64"),
        (example(label=int64s(1), vector=floats(1)), "has 1 values of the feature 'vector', not 2"),
        (b"\xff" * 20, "is not a tf.train.Example"),
    ],
)
def test_the_record_that_does_not_fit_is_named(tmp_path: Path, record: bytes, trouble: str) -> None:
    fits = example(label=int64s(1), vector=floats(1, 2))
    path = write_records(tmp_path / "a", [WHOLE, fits, record])
    assert str(find_misfitting_record(path, EXPECTED, "mend it")).startswith(f"Record 2 of {path} {trouble}; ")
    assert find_misfitting_record(write_records(tmp_path / "b", [WHOLE, fits]), EXPECTED, "mend it") is None


def test_a_feature_of_any_length_may_be_missing(tmp_path: Path) -> None:
    path = write_records(tmp_path / "a", [example(label=int64s(1))])
    assert find_misfitting_record(path, (RecordFeature("tokens", "int64", None),), "mend it") is None
