"""Functions traced inside the steps; µs."""

from pipeline_lab.analysis.activity.activity import Activity
from pipeline_lab.analysis.steps import recorded_steps, retracing
from pipeline_lab.analysis.steps.retracing import Retraces
from tests.support.traces import Event, host, line, trace

TRACING = "tf.function-graph_building"


def find(*events: Event) -> Retraces:
    marks: list[Event] = [("train", 100 * step, 90, {"step_num": step, "_r": 1}) for step in range(4)]
    activity = Activity(trace(host(line("python", *marks, *events))))
    return retracing.find_retraces(activity, recorded_steps.find_steps(activity))


def test_a_tracing_is_named_by_the_function_that_is_called_next():
    found = find((TRACING, 110, 20), ("EagerLocalExecute: __inference_train_step_77", 140, 20), (TRACING, 310, 10))
    assert [(row["step"], row["duration_ns"] // 1000, row["function"]) for row in found.table.to_pylist()] == [
        (1, 20, "train_step"),
        (3, 10, None),
    ]
    assert (found.count, found.steps, found.functions) == (2, 2, ("train_step",))


def test_what_is_traced_for_a_dataset_is_named_by_the_op_that_makes_it():
    makes, calls = "EagerLocalExecute: ParallelMapDatasetV2", "EagerLocalExecute: __inference_predict_7"
    found = find((TRACING, 110, 20), (makes, 140, 20), (calls, 170, 5), (TRACING, 310, 10), (calls, 330, 5))
    assert found.table.column("dataset").to_pylist() == ["ParallelMapDatasetV2", None]
    assert (found.functions, found.datasets) == (("predict",), ("ParallelMapDatasetV2",))
    assert found.is_of_datasets, "20 of 30 µs"
    sliced = find((TRACING, 110, 20), ("EagerLocalExecute: TensorSliceDataset", 140, 20), (calls, 170, 5))
    assert (sliced.functions, sliced.datasets) == (("predict",), ()), "which has no function"


def test_what_is_traced_inside_another_tracing_belongs_to_it():
    assert find((TRACING, 110, 50), (TRACING, 120, 10), (TRACING, 165, 5)).count == 2


def test_tracing_outside_the_steps_is_none_of_theirs():
    assert find((TRACING, 500, 10)).count == 0


def test_merging_keeps_every_tracing():
    one = find((TRACING, 110, 20))
    assert retracing.merge_retraces([one, one]).count == 2
