from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_lab.errors import OptionsError
from pipeline_lab.options.run_options import read_options
from pipeline_lab.workloads.records import RecordFeature, format_features, parse_features

NAMES = st.text(st.characters(exclude_characters=",", exclude_categories=["C", "Z"]), min_size=1, max_size=20)
FEATURES = st.builds(
    RecordFeature, NAMES, st.sampled_from(["int64", "float32", "bytes"]), st.none() | st.integers(1, 999_999)
)


def records(*stages: dict[str, Any], **workload: Any) -> dict[str, Any]:
    given = {"kind": "records", "pattern": "/data/*", "features": "label:int64, tokens:int64[*]", **workload}
    return {"workload": given, "pipeline": {"stages": [{"stage": "read"}, *stages]}}


PARSE, BATCH = {"stage": "parse"}, {"stage": "batch", "size": 4}


def test_features_are_read_as_people_write_them() -> None:
    assert parse_features("label:int64,image/bbox:float32[4] , tokens:int64[*],a:b:bytes") == (
        RecordFeature("label", "int64", 1),
        RecordFeature("image/bbox", "float32", 4),
        RecordFeature("tokens", "int64", None),
        RecordFeature("a:b", "bytes", 1),
    )


@given(st.lists(FEATURES, max_size=8, unique_by=lambda feature: feature.name))
@pytest.mark.slow
def test_features_that_are_written_come_back(features: list[RecordFeature]) -> None:
    assert parse_features(format_features(features)) == tuple(features)


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        (records(PARSE, BATCH, features="label"), "'label' is not a feature; write them like label:int64"),
        (records(PARSE, BATCH, features="a:int32"), "'a:int32' is not a feature"),
        (records(PARSE, BATCH, features="a:int64, a:bytes"), "the feature 'a' is there twice"),
        (records(PARSE, BATCH, features=""), "features is empty; read them from the files"),
        (records(PARSE, BATCH, pattern=""), "pattern is empty; give the path of your files"),
        (records(BATCH, PARSE, label="class"), "label is 'class', which is not one of the features: label, tokens"),
        (records(BATCH, PARSE, label="tokens"), r"a label is one int64 per record, and tokens:int64\[\*\] is not"),
        (records(BATCH, PARSE, label="label", features="label:int64"), "there is nothing but the label to train on"),
        (records(PARSE, BATCH), "set mode = padded_batch or ragged_batch"),
        (records({**BATCH, "mode": "padded_batch"}, PARSE), "padded_batch is for examples of different lengths"),
        (records(BATCH), "the records workload needs a parse stage"),
    ],
)
def test_what_cannot_be_run_is_one_clear_sentence(document: dict[str, Any], sentence: str) -> None:
    with pytest.raises(OptionsError, match=sentence) as caught:
        read_options(document)
    assert str(caught.value).endswith(".")


def test_features_are_parsed_in_whole_batches_or_filled_up() -> None:
    assert read_options(records(BATCH, PARSE)).records is None
    assert read_options(records(PARSE, {**BATCH, "mode": "ragged_batch"})).records is None
    assert read_options(records(PARSE, BATCH, features="label:int64, x:float32[3]")).records is None
