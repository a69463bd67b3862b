"""What a watched run tells of its script, read from its folder."""

from dataclasses import replace
from pathlib import Path

import pytest

from pipeline_lab.advice.analyzing import analyze_path
from pipeline_lab.advice.script.script_forecasts import measure_script, recipe_of
from pipeline_lab.advice.script.script_run import ScriptRun, computed_in_loop_ns, least_step_ns
from pipeline_lab.analysis.activity.activity import LOOP_LABEL
from pipeline_lab.errors import Unavailable
from pipeline_lab.pipeline.recipe import Recipe
from pipeline_lab.runs.store import RunStore
from tests.support.measured_run import make_measured_run, make_watched_run
from tests.support.results import MS, diagnosis


def test_stages_steps_and_processor_of_a_watched_run(tmp_path: Path):
    folder = make_watched_run(RunStore(tmp_path))
    recipe = recipe_of(folder)
    assert isinstance(recipe, Recipe)
    run = measure_script(analyze_path(folder.path), recipe)
    assert isinstance(run, ScriptRun)
    assert (run.step_ns, run.ceiling_ns, run.cores, run.pool_threads) == (20e6, 5e6, 4.0, 4)
    mapped = next(stage for stage in run.stages if stage.name == "Map")
    assert (mapped.calls, mapped.visits, mapped.work_ns) == ((2,), 10.0, pytest.approx(20e6))
    assert run.cpu_share == pytest.approx(4.0 / 25.0)  # 4 ms of processor for 20 ms of map and 5 ms of step


def test_a_step_of_a_loop_inside_of_a_function_takes_at_least_what_it_computes():
    found = diagnosis()
    assert not isinstance(found.steps, Unavailable)
    assert not isinstance(found.step_breakdown, Unavailable)
    computes = replace(found.step_breakdown, device_compute_ns=0, host_compute_ns=found.step_breakdown.total_ns // 4)
    in_loop = replace(found, steps=replace(found.steps, marker=LOOP_LABEL), step_breakdown=computes)
    least = (computes.device_copy_ns + computes.host_compute_ns) / computes.total_ns
    assert computed_in_loop_ns(in_loop, 20.0 * MS) == pytest.approx(20.0 * MS * least)
    assert computed_in_loop_ns(replace(in_loop, steps=found.steps), 20.0 * MS) == 0.0


def test_a_watched_run_is_advised_by_its_lines(tmp_path: Path):
    first = analyze_path(make_watched_run(RunStore(tmp_path)).path).verdict.suggestions[0]
    assert first.edit == "train.py:41  .map(load) → .map(load, num_parallel_calls=tf.data.AUTOTUNE)"
    assert first.predicted_gain_percent == 75.0


def test_a_run_without_a_recipe_says_what_to_do(tmp_path: Path):
    why = recipe_of(make_measured_run(RunStore(tmp_path)))
    assert isinstance(why, Unavailable)
    assert "pipeline-lab watch" in why.reason


def test_a_step_on_a_device_takes_at_least_what_it_takes_alone_because_the_host_waits_beside_it():
    on_device = diagnosis()
    assert least_step_ns(on_device) == 16.0 * MS
    assert least_step_ns(replace(on_device, step_breakdown=Unavailable("No window."))) == 1.0
    assert least_step_ns(replace(on_device, calibration=Unavailable("Not timed."))) == 1.0
    breakdown = on_device.step_breakdown
    assert not isinstance(breakdown, Unavailable)
    assert least_step_ns(replace(on_device, step_breakdown=replace(breakdown, device_compute_ns=0))) == 1.0
