import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_lab.comparison.differences import MAX_VALUE_LENGTH, find_differences, flatten, flatten_options
from tests.support.presets import BASELINE, OPTIMISED

BASELINE_OPTIONS, OPTIMISED_OPTIONS = (preset.options.model_dump(mode="json") for preset in (BASELINE, OPTIMISED))

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)
DOCUMENTS = st.dictionaries(st.text(min_size=1, max_size=4), JSON, min_size=1, max_size=4)


def options_of(*documents: dict) -> dict[str, tuple[str | None, ...]]:
    found = find_differences(documents, [{}] * len(documents), [None] * len(documents))
    return {entry.path: entry.values for entry in found.options}


def test_stages_are_compared_by_name_so_that_one_more_changes_only_itself() -> None:
    found = options_of(BASELINE_OPTIONS, OPTIMISED_OPTIONS)
    assert found["pipeline.prefetch.buffer_size"] == (None, "autotune")
    assert found["pipeline.read.mode"] == ("sequential", "interleave")
    assert found["pipeline.stages"] == (
        "read → shuffle → repeat → parse → augment → batch",
        "read → shuffle → repeat → batch → parse → augment → prefetch",
    )
    assert not any(path.startswith(("workload", "training", "name", "schema_version")) for path in found)


def test_a_stage_that_occurs_twice_is_numbered() -> None:
    pipeline = {"stages": [{"stage": "shuffle", "buffer_size": 1}, {"stage": "shuffle", "buffer_size": 2}]}
    assert flatten_options({"pipeline": pipeline}) == {
        "pipeline.stages": "shuffle → shuffle#2",
        "pipeline.shuffle.buffer_size": "1",
        "pipeline.shuffle#2.buffer_size": "2",
    }


def test_equal_file_sizes_are_written_as_the_options_accept_them() -> None:
    assert flatten({"examples_per_file": [1024] * 8})["examples_per_file"] == "8x1024"
    assert flatten({"examples_per_file": [1000, 2000]})["examples_per_file"] == "[1000, 2000]"


def test_long_values_are_cut_where_that_hides_no_difference() -> None:
    sizes = list(range(1000, 1100))
    found = options_of({"sizes": sizes}, {"sizes": [1, *sizes]}, {"sizes": sizes})["sizes"]
    assert [len(value or "") for value in found] == [MAX_VALUE_LENGTH] * 3
    assert (found[0], (found[1] or "")[:10]) == (found[2], "[1, 1000, ")
    found = options_of({"sizes": sizes}, {"sizes": [*sizes[:-2], 7, 8]})["sizes"]
    assert found == ("…, 1095, 1096, 1097, 1098, 1099]", "…, 1095, 1096, 1097, 7, 8]")


@given(st.lists(st.text("ab", min_size=195, max_size=420), min_size=2, max_size=4))
@pytest.mark.slow
def test_no_difference_of_long_values_is_hidden(values: list[str]) -> None:
    found = options_of(*({"a": value} for value in values)).get("a", tuple(values))
    for one, shown in zip(values, found, strict=True):
        assert [one == each for each in values] == [shown == each for each in found]


def test_lists_of_documents_are_compared_entry_by_entry() -> None:
    assert flatten({"gpus": [{"name": "A"}, {"name": "B"}]}) == {"gpus.0.name": "A", "gpus.1.name": "B"}


def test_a_run_without_options_makes_no_difference_but_is_named() -> None:
    found = find_differences([{"a": 1}, None, {"a": 1}], [{}, {"host": "x"}, {"host": "y"}], [None] * 3)
    assert (found.options, found.unknown_options, found.unknown_environment) == ((), (1,), (0,))
    assert found.environment[0].values == (None, "x", "y")


def test_sources_are_shown_as_a_diff_that_is_empty_where_they_are_equal() -> None:
    found = find_differences([None] * 4, [{}] * 4, ["a\nb\n", "a\nb\n", "a\nc\n", None])
    assert found.sources[0] == ""
    assert found.sources[1].splitlines()[3:] == [" a", "-b", "+c"]
    assert found.sources[2] is None


@pytest.mark.slow
@given(DOCUMENTS)
def test_a_document_does_not_differ_from_itself(document: dict) -> None:
    assert options_of(document, document) == {}


@given(DOCUMENTS, DOCUMENTS)
@pytest.mark.slow
def test_differences_do_not_depend_on_which_run_is_the_baseline(first: dict, second: dict) -> None:
    one, other = options_of(first, second), options_of(second, first)
    assert one == {path: values[::-1] for path, values in other.items()}
    assert all(before != after for before, after in one.values())
