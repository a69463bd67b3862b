import json
import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from pipeline_lab.analysis.declaring.job_events import JobEvents
from pipeline_lab.analysis.sampling import evaluation
from pipeline_lab.analysis.sampling.file_reads import FileReads
from pipeline_lab.analysis.sampling.file_sampling import FileSampling, within_reach
from pipeline_lab.analysis.verdict.findings import find_all_findings
from pipeline_lab.errors import TraceIncompleteError, Unavailable
from pipeline_lab.runs.run_documents import DataFile
from pipeline_lab.runs.run_events import EvaluationEvent
from pipeline_lab.runs.run_tables import EVALUATED
from tests.support import results

FILES = [DataFile("a", 30, 1), DataFile("b", 30, 1), DataFile("c", 4, 1)]
SECOND = 10**9


def passes(*losses: float | None) -> list[EvaluationEvent]:
    """Return a pass of 3 s after every 10 steps."""
    return [
        EvaluationEvent(one, 10 * (one + 1), (10 * one + 7) * SECOND, (10 * one + 10) * SECOND, SECOND, 2, loss, None)
        for one, loss in enumerate(losses)
    ]


def examples(*rows: tuple[int, int, int]) -> pa.Table:
    """Return the examples of passes as (pass, file, record)."""
    columns = list(zip(*((*row, None) for row in rows), strict=True)) or [()] * len(EVALUATED.schema.names)
    return pa.table(dict(zip(EVALUATED.schema.names, columns, strict=True)), schema=EVALUATED.schema)


def test_the_passes_stand_in_a_row_with_what_they_found():
    found = evaluation.read_evaluation(
        JobEvents(passes(2.0, 1.5)), examples(), FILES, 5 * SECOND, held_out=0, is_rebuilt=False
    )
    table = found.passes.to_pydict()
    assert (table["pass"], table["step"], table["loss"]) == ([1, 2], [10, 20], [2.0, 1.5])
    assert table["start_ns"] == [2 * SECOND, 12 * SECOND]
    assert (found.count, found.total_ns, found.last_loss, found.last_accuracy) == (2, 6 * SECOND, 1.5, None)
    assert found.sampling is evaluation.NO_SAMPLES


def test_what_is_no_finite_number_is_null_in_the_table_and_in_json():
    diverged = passes(2.0, math.nan, math.inf, None)
    found = evaluation.read_evaluation(JobEvents(diverged), examples(), FILES, 0, held_out=0, is_rebuilt=False)
    document = json.loads(json.dumps(results.diagnosis(evaluation=found).to_json(), allow_nan=False))
    rows = document["evaluation"]["passes"]
    assert [row["loss"] for row in rows] == found.passes.to_pydict()["loss"] == [2.0, None, None, None]
    assert [row["accuracy"] for row in rows] == [None] * 4
    assert (found.last_loss, found.last_accuracy) == (None, None)


def test_passes_keep_what_they_found_where_their_examples_contradict_the_files():
    found = evaluation.read_evaluation(
        JobEvents(passes(2.0)), examples((0, 2, 1000)), FILES, 0, held_out=0, is_rebuilt=False
    )
    assert found.last_loss == 2.0
    assert isinstance(found.sampling, Unavailable)
    assert "1,001" in found.sampling.reason


def test_a_pass_reads_held_out_files_alone_and_they_are_counted_apart():
    rows = [(number, 2, record) for number in range(3) for record in range(3)]
    found = evaluation.read_evaluation(
        JobEvents(passes(1.0, 1.0, None)), examples(*rows), FILES, 0, held_out=1, is_rebuilt=True
    )
    assert isinstance(found.sampling, FileSampling)
    assert found.sampling.table.to_pydict()["file"] == ["c"]
    assert found.sampling.table.to_pydict()["samples"] == [9]
    assert found.sampling.coverage_percent == 75.0
    assert found.sampling.timeline.to_pydict()["step"] == [1.0, 2.0, 3.0], "a pass stands in the place of a step"
    assert found.last_loss is None


def test_a_job_without_a_pass_says_how_to_get_one():
    with pytest.raises(TraceIncompleteError, match=r"training\.evaluate_every"):
        evaluation.read_evaluation(JobEvents(), examples(), FILES, 0, held_out=0, is_rebuilt=True)


def test_reads_of_held_out_files_are_left_out():
    reads = FileReads({"a": 5, "c": 7}, {}, {"a": np.array([[1, 5]]), "c": np.array([[1, 7]])})
    left = reads.without(FILES[2:])
    assert left.by_file == {"a": 5}
    assert left.by_step.keys() == {"a"}


def test_a_pipeline_that_starts_over_is_told_once_and_not_by_what_follows_from_it():
    uneven = replace(results.file_sampling(), total_variation=0.4, total_variation_ideal=0.01, duplicates=3000)
    kinds = [finding.kind for finding in find_all_findings(results.diagnosis(file_sampling=uneven))]
    assert {"sampling-skew", "duplicates"} <= set(kinds)
    limited = within_reach(uneven, int(0.6 * sum(uneven.table.column("records").to_pylist())))
    found = {finding.kind: finding.sentence for finding in find_all_findings(results.diagnosis(file_sampling=limited))}
    assert not {"sampling-skew", "weak-shuffle", "duplicates"} & set(found)
    assert "at most 60 % of the data can be seen" in found["low-coverage"]


def test_a_reach_that_covers_the_data_is_no_limit():
    whole = results.file_sampling()
    assert within_reach(whole, 10**9) is whole
    assert within_reach(whole, None) is whole
