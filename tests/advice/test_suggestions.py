"""Suggestions for a run whose numbers are given: which come, in what order, and which stay away."""

from dataclasses import replace
from typing import Any

import pytest

from pipeline_lab.advice.measured_run import Measured
from pipeline_lab.advice.suggestions import suggest
from pipeline_lab.advice.what_if import fit_to_run
from pipeline_lab.analysis.verdict.verdict import Suggestion
from pipeline_lab.errors import Unavailable
from pipeline_lab.options.run_options import RunOptions, read_options
from tests.advice.test_option_changes import pasted
from tests.support import results
from tests.support.measured import BATCH, MAP_MS, MS, mapped, measured, options, with_workload

SERIAL_MS = BATCH * MAP_MS


def suggested(run: Measured, ram_bytes: int = 100_000_000) -> dict[str, Suggestion]:
    """Return what is suggested for a run, given its memory for buffers, with no finding on its sampling."""
    model = replace(results.live_model(), ram_budget_bytes=ram_bytes)
    diagnosis = results.diagnosis(live_model=model, file_sampling=Unavailable("No samples."))
    found = suggest(diagnosis, run, "some-run")
    for each in found:
        if each.options is not None:
            assert pasted(run.options, each.command) == read_options(each.options)
    return {each.change: each for each in found}


def ran(what: RunOptions, **more: Any) -> Measured:
    """Return a run with other options, whose stages cost what they cost in the usual one."""
    usual = measured()
    costs = {cost.stage: cost for cost in usual.stages}
    stages = tuple(
        replace(costs.get(stage.stage, costs["batch"]), stage=stage.stage, examples_per_call=size or 1)
        for stage, size in zip(what.pipeline.stages, what.pipeline.batch_sizes, strict=True)
    )
    return measured(options=what, stages=stages, **more)


def test_a_serial_map_gets_calls_and_a_cache():
    found = suggested(measured())
    calls = found["Give map 4 parallel calls."]
    assert calls.predicted_gain_percent == 75.0
    assert "20 ms of thread time" in calls.why
    assert calls.settings == ("pipeline.map.num_parallel_calls=4",)
    assert "+    dataset = dataset.map(work, num_parallel_calls=4)" in calls.source_diff.splitlines()
    assert read_options(calls.options or {}).pipeline.stages[2] == options(mapped(4)).pipeline.stages[2]
    assert found["Cache in memory after map."].predicted_gain_percent == 75.0
    assert list(found) == ["Give map 4 parallel calls.", "Cache in memory after map."]
    assert [each.risk for each in found.values()] == ["low risk", "some risk"], (
        "of equal gain the safer one comes first"
    )


def test_a_job_that_waits_for_nothing_gets_no_suggestion():
    assert suggested(measured(step_ms=50.0, device_only_ms=50.0)) == {}


def test_full_cores_get_no_more_calls_but_a_cache():
    run = measured(other_cores=2.0)
    stages = tuple(replace(cost, cpu_ns_per_example=cost.ns_per_example) for cost in run.stages)
    run = replace(run, stages=stages, options=with_workload(run.options, work="spin"), step_cpu_ns=20.0 * MS)
    assert list(suggested(run)) == ["Cache in memory after map."]


def test_a_pool_that_is_too_small_is_widened():
    run = ran(options(mapped(8), private_threadpool_size=2), step_ms=SERIAL_MS / 2)
    found = suggested(run)
    assert found["Set private_threadpool_size to 4."].predicted_gain_percent == 50.0
    assert found["Set private_threadpool_size to 4."].side_effects == ("4 threads instead of 2.",)


def test_step_and_input_in_turns_get_a_prefetch():
    run = ran(options(prefetch=None), step_ms=SERIAL_MS + 5.0)
    assert suggested(run)["Add prefetch as the last stage."].predicted_gain_percent == 20.0


def test_an_order_that_holds_the_job_up_can_be_given_up():
    run = fit_to_run(ran(options(mapped(8)), step_ms=40.0, waited_ms=35.0))
    assert isinstance(run, Measured)
    found = suggested(run)["Set deterministic=False on map."]
    assert found.predicted_gain_percent == 87.5
    assert "order of the examples" in found.side_effects[0]


def test_calls_from_python_are_made_for_whole_batches():
    found = suggested(ran(options(mapped()), step_ms=SERIAL_MS))
    assert "Put batch before map, so that each call sees a whole batch." not in found  # it takes 2 ms in any case
    stages = [replace(cost, ns_per_example=3.0 * MS) if cost.stage == "map" else cost for cost in measured().stages]
    found = suggested(measured(stages=tuple(stages), step_ms=30.0))
    assert found["Put batch before map, so that each call sees a whole batch."].predicted_gain_percent == 30.0


def test_no_cache_is_put_above_anything_random():
    found = suggested(ran(with_workload(options(), jitter_percent=50), step_ms=SERIAL_MS))
    assert not any("Cache" in change and "map" in change for change in found)


@pytest.mark.parametrize(("ram_bytes", "where"), [(10_000_000, "memory"), (1_000_000, "disk")])
def test_a_cache_goes_where_it_fits(ram_bytes: int, where: str):
    """A thousand examples of 1 kB and the buffers need more than four fifths of a megabyte."""
    found = suggested(measured(), ram_bytes)
    (cache,) = [change for change in found if change.startswith("Cache")]
    assert where in cache
    assert any("1 MB" in effect for effect in found[cache].side_effects)


def test_a_cache_behind_a_part_of_the_data_is_left_to_people():
    found = suggested(ran(options({"stage": "take", "count": 100}, {"stage": "repeat"}, mapped()), step_ms=SERIAL_MS))
    assert not any(change.startswith("Cache") for change in found)


def test_files_that_were_not_sampled_by_their_size_are_drawn_by_it():
    findings = [finding.kind for finding in results.diagnosis().findings]
    found = [each.change for each in suggest(results.diagnosis(), measured(), "some-run")]
    assert ("sampling-skew" in findings) == any("mode = sample" in change for change in found)
