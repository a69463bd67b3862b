"""Stages of several pipelines are matched by the calls that they stand for."""

from dataclasses import replace

import pytest

from pipeline_lab.comparison.compared_stages import (
    FROM_MODEL,
    FROM_TRACE,
    OTHER_ORDER,
    ComparedStages,
    StageRow,
    StageUse,
    compare_stages,
)
from pipeline_lab.comparison.recorded_runs import compare_runs
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.comparing.compared_pipelines import _label, stage_difference, stages_by_run
from pipeline_lab.runs.run_documents import WrittenPipeline, WrittenStage
from tests.support import results
from tests.support.recorded import recorded

NONE = Unavailable("Nothing was measured; run it again.")
MS = 1_000_000


def traced(*kinds: str, self_ms: float = 1.0, functions: tuple[str, ...] = ()):
    """Build a diagnosis whose stages took ``self_ms`` each for the one batch; ``functions`` are those of the outermost."""
    plain = results.tf_data().stages[0]
    path, stages = "", []
    for number, kind in enumerate(kinds):
        path = f"{path}::{kind}".removeprefix("::")
        parent = number - 1 if number else None
        node = f"{kind}Dataset:{number}"
        stages.append(
            replace(
                plain, number=number, parent=parent, name=kind, path=path, node=node,
                self_ns=int(self_ms * MS), elements=1,
            )
        )  # fmt: skip
    written = tuple(
        WrittenStage(stage.node, "MapDataset", f"map_{function}", {}, ())
        for stage, function in zip(stages, functions, strict=False)
    )
    return results.diagnosis(
        tf_data=replace(results.tf_data(), stages=tuple(stages)),
        live_model=NONE,
        written=WrittenPipeline(written, 2) if functions else NONE,
    )


def compared(*diagnoses) -> ComparedStages:
    found = compare_stages(diagnoses)
    assert isinstance(found, ComparedStages)
    return found


def names(found: ComparedStages) -> list[str]:
    return [row.name for row in found.rows]


def test_a_parallel_stage_stands_beside_the_serial_one():
    found = compared(traced("BatchV2", "Map"), traced("Prefetch", "BatchV2", "ParallelMapV2", self_ms=3))
    assert names(found) == ["map", "batch", "prefetch"]
    mapped, _, prefetch = found.rows
    assert [use.ran if use else None for use in mapped.uses] == [("Map",), ("ParallelMapV2",)]
    assert found.difference_ns(mapped, 1) == 2 * MS
    assert prefetch.uses[0] is None
    assert found.difference_ns(prefetch, 1) == 3 * MS  # the baseline has none, which takes no time


def test_calls_that_one_run_fused_are_one_row_in_all():
    found = compared(traced("BatchV2", "Map", "Shuffle"), traced("MapAndBatch", "Shuffle", self_ms=5))
    assert names(found) == ["shuffle", "batch + map"]
    assert [use.work_ns for use in found.rows[1].uses if use] == [2 * MS, 5 * MS]


def test_functions_tell_maps_apart_wherever_they_stand():
    found = compared(
        traced("Map", "Map", functions=("augment", "parse")), traced("Map", "Map", functions=("parse", "augment"))
    )
    assert sorted(names(found)) == ["map(augment)", "map(parse)"]


def test_without_functions_in_one_run_maps_are_counted_from_the_consumer():
    found = compared(traced("Map", "Map", functions=("augment", "parse")), traced("ParallelMapV2", "ParallelMapV2"))
    assert names(found) == ["map 2", "map"]


def test_a_run_against_itself_does_not_differ():
    run = results.diagnosis()
    found = compared(run, run)
    assert {found.difference_ns(row, 1) for row in found.rows} == {0.0}
    assert found.notes == ()


def test_a_run_without_stages_is_not_measured_and_not_zero():
    found = compared(traced("Map"), results.diagnosis(tf_data=NONE, live_model=NONE))
    assert found.sources == (FROM_TRACE, NONE)
    assert found.difference_ns(found.rows[0], 1) is None
    assert found.notes == ("Not measured in 1 of 2 runs.",)
    assert compare_stages([results.bare_diagnosis()] * 2) == results.bare_diagnosis().tf_data


def test_times_from_model_and_trace_are_told_apart():
    found = compared(traced("Map"), results.diagnosis())
    assert found.sources == (FROM_TRACE, FROM_MODEL)
    assert "Some times are from" in found.notes[0]


@pytest.mark.parametrize("runs", [2, 3])
def test_the_document_holds_rows_and_their_sources(runs: int):
    document = compare_runs(*[recorded()] * runs).to_json()["stages"]
    assert document["sources"] == [FROM_MODEL] * runs
    assert {len(row["uses"]) for row in document["rows"]} == {runs}


@pytest.mark.parametrize("runs", [2, 3, 20])
@pytest.mark.slow
def test_charts_hold_the_same_numbers(runs: int):
    comparison = compare_runs(*(replace(recorded(), diagnosis=traced("Map", self_ms=1 + n)) for n in range(runs)))
    by_run, difference = stages_by_run(comparison), stage_difference(comparison)
    if runs == 2:
        times = [list(bars.x) for bars in by_run.data if bars.xaxis == "x2"]
        assert times == [[1.0], [2.0]]
        assert list(difference.data[0].x) == [1.0]
    else:
        assert [list(row) for row in by_run.data[0].z] == [[1.0 + n for n in range(runs)]]
        assert [list(row) for row in difference.data[0].z] == [[float(n) for n in range(1, runs)]]


def test_stages_in_another_order_are_said_to_be():
    functions = ("augment", "parse")
    same = compared(traced("Map", "Map", functions=functions), traced("Map", "Map", functions=functions))
    assert OTHER_ORDER not in same.notes
    other = compared(traced("Map", "Map", functions=functions), traced("Map", "Map", functions=functions[::-1]))
    assert OTHER_ORDER in other.notes


def test_stages_that_were_not_measured_are_not_missing():
    nothing = results.diagnosis(tf_data=NONE, live_model=NONE)
    runs = [replace(recorded(name="a"), diagnosis=traced("BatchV2", "Map"))]
    runs.append(replace(recorded(name="b"), diagnosis=nothing))
    names = {bars.name for bars in stages_by_run(compare_runs(*runs)).data if bars.type == "bar" and bars.xaxis is None}
    assert "in a; of b nothing is known" in names
    assert not any(name and name.startswith("only") for name in names)


def test_one_call_is_one():
    def use(calls: float | None) -> StageUse:
        return StageUse(("Map",), 1.0, calls, None, None, 0)

    assert "1 call at once" in _label(StageRow("map", (use(1.0), use(None))))
    assert "1 → 2 calls at once" in _label(StageRow("map", (use(None), use(2.0))))
    assert "at once" not in _label(StageRow("map", (use(None), None)))


def test_a_pair_is_one_pipeline_from_the_source_down_with_what_only_one_run_has_apart():
    runs = [replace(recorded(name="a"), diagnosis=traced("BatchV2", "Map")), recorded(name="b")]
    runs[1] = replace(runs[1], diagnosis=traced("Prefetch", "BatchV2", "ParallelMapV2", self_ms=3))
    figure = stages_by_run(compare_runs(*runs))
    drawn = {bars.name: bars for bars in figure.data if bars.type == "bar" and bars.name}
    assert [text.split("<br>")[0] for bars in figure.data if bars.type == "scatter" for text in bars.text] == [
        "<b>map</b>",
        "<b>batch</b>",
        "<b>prefetch</b>",
    ]
    assert list(drawn["in both"].y) == [0, 1]
    assert list(drawn["only in b"].y) == [2]
    assert list(drawn["a"].x) == [1.0, 1.0, None]
    assert list(drawn["b"].x) == [3.0, 3.0, 3.0]
