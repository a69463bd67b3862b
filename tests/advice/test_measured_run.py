"""From a run folder to what predictions need: the folder's numbers add up in the head."""

from dataclasses import replace
from pathlib import Path

import pytest

from pipeline_lab.advice.measured_run import Measured, read_measured
from pipeline_lab.advice.recorded_options import options_of
from pipeline_lab.advice.what_if import measure_run, predict
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.diagnosis.saved import diagnose_saved
from pipeline_lab.analysis.machine.job_load import JobLoad
from pipeline_lab.errors import Unavailable
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.store import RunStore
from tests.advice.test_stage_costs import chain
from tests.support import results
from tests.support.measured import BATCH, EXAMPLE_BYTES, MAP_MS, MS, STEP_MS, options, with_workload
from tests.support.measured_run import CORES, CPU_MS, THREADS, make_measured_run
from tests.support.recorded_run import write_run


def read(folder: RunFolder) -> Measured:
    found = measure_run(folder)
    assert isinstance(found, Measured), found
    return found


def test_a_run_tells_step_stages_and_machine(tmp_path: Path):
    found = read(make_measured_run(RunStore(tmp_path)))
    assert (found.step_ns / MS, found.device_only_ns / MS, found.waited_ns / MS) == (BATCH * MAP_MS, STEP_MS, 15.0)
    assert (found.cores, found.pool_threads, found.other_cores) == (CORES, THREADS, 0.0)
    costs = {cost.stage: cost for cost in found.stages}
    assert list(costs) == ["read", "repeat", "map", "batch", "prefetch"]
    assert costs["map"].ns_per_example / MS == pytest.approx(MAP_MS)
    assert costs["map"].bytes_per_example == EXAMPLE_BYTES
    assert costs["batch"].examples_per_call == BATCH
    assert (found.records, found.pipeline_factor) == (1000, pytest.approx(1.0))


def test_time_between_steps_that_nobody_knows_is_left_to_the_model(tmp_path: Path):
    folder = make_measured_run(RunStore(tmp_path))
    diagnosis = diagnose_saved(folder.path)
    job = diagnosis.job_steps
    assert not isinstance(job, Unavailable)
    unknown = replace(job, table=tables.replace_column(job.table, "compute_ns", None))
    found = read_measured(replace(diagnosis, job_steps=unknown), options())
    assert isinstance(found, Measured)
    assert (found.between_ns, found.waited_ns / MS) == (0.0, 15.0)


def test_what_sleeps_costs_no_processor_time_and_the_rest_is_the_steps(tmp_path: Path):
    found = read(make_measured_run(RunStore(tmp_path)))
    assert {cost.stage: cost.cpu_ns_per_example / MS for cost in found.stages}["map"] == pytest.approx(0.0, abs=1e-9)
    assert found.step_cpu_ns / MS == pytest.approx(CPU_MS, rel=1e-3)


def test_what_a_run_takes_is_what_its_own_options_are_predicted_to_take(tmp_path: Path):
    found = read(make_measured_run(RunStore(tmp_path)))
    assert predict(found, found.options).step_ns / MS == pytest.approx(found.step_ns / MS)
    faster = predict(found, options({"stage": "repeat"}, {"stage": "map", "num_parallel_calls": 4}))
    assert faster.step_ns / MS == pytest.approx(STEP_MS)


def test_what_stands_before_a_full_cache_keeps_its_time_on_full_cores():
    # all of one core for a step of 50 ms; nobody waits for the map of 8 ms any more, which ten examples would make 80
    told = with_workload(options({"stage": "map"}, {"stage": "cache"}, {"stage": "repeat"}), work="spin")
    stages = (
        ("Prefetch", 1, 0.0),
        ("BatchV2", 1, 0.0),
        ("ForeverRepeat", 10, 0.0),
        ("MemoryCache", 10, 0.1),
        ("MemoryCacheImpl", 10, 0.0),
        ("Map", 0, 8.0),
        ("TFRecord", 0, 1.0),
    )
    model = replace(results.live_model(), stages=tuple(chain(*stages)))
    load = JobLoad(cores=1.0, pool_threads=2, cores_used=1.0, cpu_ns_per_step=50e6, other_cores=0.0)
    found = read_measured(results.diagnosis(live_model=model, job_load=load), told)
    assert isinstance(found, Measured)
    costs = {cost.stage: (cost.ns_per_example / MS, cost.cpu_ns_per_example / MS) for cost in found.stages}
    assert (costs["read"], costs["map"]) == ((1.0, 1.0), (8.0, 8.0))
    assert found.step_cpu_ns / MS == pytest.approx(50.0 - 10 * 0.1)


def test_a_run_without_a_model_of_its_pipeline_says_so(tmp_path: Path):
    folder = make_measured_run(RunStore(tmp_path))
    folder.model.unlink()
    found = measure_run(folder)
    assert isinstance(found, Unavailable)
    assert "sampled tf.data's own model" in found.reason


def test_a_job_that_is_not_ours_has_no_options_to_change(tmp_path: Path):
    found = options_of(write_run(tmp_path / "run"))
    assert isinstance(found, Unavailable)
    assert "does not say what options" in found.reason
