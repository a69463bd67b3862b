"""Whole jobs and a race on the emulated accelerator, in the process that has TensorFlow loaded."""

from pathlib import Path

import numpy as np
import pytest

from pipeline_lab.analysis.diagnosis.diagnose import diagnose
from pipeline_lab.comparison.race_result import read_race
from pipeline_lab.options.profiling import ProfilingOptions
from pipeline_lab.options.race_options import RaceOptions
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.options.training import TrainingOptions
from pipeline_lab.runs.launch.launcher import create_run
from pipeline_lab.runs.record import EMULATED_ACCELERATOR, EMULATED_NOTE, EMULATED_PLANE
from pipeline_lab.runs.run_folder import read_record
from pipeline_lab.runs.run_tables import STEPS, read_table
from pipeline_lab.runs.store import RunStore
from pipeline_lab.stages.batches import BatchStage
from pipeline_lab.stages.delivery import PrefetchStage
from pipeline_lab.stages.functions import MapStage
from pipeline_lab.stages.order import RepeatStage
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.read import ReadStage
from pipeline_lab.trace.sources import read_trace
from pipeline_lab.units import NS_PER_MS
from pipeline_lab.workloads.synthetic import SyntheticWorkload
from tests.support.warm_worker import Ask
from tests.worker.fakes import make_folder, supervised

pytestmark = pytest.mark.tensorflow

STEP_MS, WINDOW_STEPS = 15.0, 4
CLOCKS_APART_NS = NS_PER_MS
"""Job and profiler read two clocks, one of which the system may correct."""


def _options(*last: PrefetchStage, **training: object) -> RunOptions:
    return RunOptions(
        name="prefetched" if last else "plain",
        workload=SyntheticWorkload(map_ms=1.0, compute_ms=0.0, examples_per_file=(100, 100)),
        pipeline=PipelineOptions(stages=(ReadStage(), RepeatStage(), MapStage(), BatchStage(size=4), *last)),
        training=TrainingOptions.model_validate(
            {"device": "emulated", "step_ms": STEP_MS, "steps": 10, "warmup_steps": 2, **training}
        ),
        profiling=ProfilingOptions(steps_per_window=WINDOW_STEPS, every_steps=50),
    )


@pytest.mark.parametrize("reads", [False, True], ids=["goes on", "reads every step"])
def test_a_job_takes_exactly_the_time_that_is_set_and_computes_nothing(
    ask_tensorflow: Ask, tmp_path: Path, reads: bool
) -> None:
    folder = make_folder(tmp_path, _options(read_every_step=reads))
    ask_tensorflow("run_here", folder=str(folder.path))
    found = diagnose(folder.path)
    assert read_record(folder).environment["device"] == EMULATED_ACCELERATOR
    assert found.source.is_emulated
    assert found.verdict.sentence.endswith(EMULATED_NOTE)
    assert found.idle_gaps.device == EMULATED_ACCELERATOR
    assert found.calibration.device_only_ns == STEP_MS * NS_PER_MS
    steps = read_table(folder.steps, STEPS)
    assert np.isnan(steps["loss"].to_numpy()).all()
    (trace,) = folder.path.rglob("*.xplane.pb")
    plane = read_trace(trace).plane(EMULATED_PLANE)
    assert plane is not None
    (line,) = plane.lines
    assert (line.duration_ns == STEP_MS * NS_PER_MS).all()
    assert line.count >= WINDOW_STEPS, "a busy machine stops the profiler late"


def test_a_step_begins_after_its_launch_on_the_same_time_axis(ask_tensorflow: Ask, tmp_path: Path) -> None:
    folder = make_folder(tmp_path, _options())
    ask_tensorflow("run_here", folder=str(folder.path))
    trace = read_trace(next(folder.path.rglob("*.xplane.pb")))
    starts = {}
    for name, wanted in ((EMULATED_PLANE, "emulated step"), ("/host:CPU", "emulated launch")):
        plane = trace.plane(name)
        assert plane is not None
        is_wanted = plane.name_mask(lambda event, wanted=wanted: event == wanted)
        for line in plane.lines:
            rows = np.flatnonzero(is_wanted[line.name_index])
            if len(rows):
                numbers, known = line.stats.ints(rows, "correlation_id")
                assert known.all()
                starts[wanted] = dict(zip(numbers.tolist(), line.start_ns[rows].tolist(), strict=True))
    both = starts["emulated step"].keys() & starts["emulated launch"].keys()
    assert len(both) >= WINDOW_STEPS, "the profiler may stop late, and on the host before it does on the device"
    for number in both:
        start_ns = starts["emulated step"][number]
        assert start_ns > starts["emulated launch"][number] - CLOCKS_APART_NS


def test_both_arms_of_a_race_take_the_same_steps(ask_tensorflow: Ask, tmp_path: Path) -> None:
    varied = {"step_variation_percent": 30.0, "step_ms": 5.0}
    arms = (_options(**varied), _options(PrefetchStage(buffer_size=2), **varied))
    options = RaceOptions(arms=arms, pairs=6, block_steps=4, max_extra_load_percent=100)
    folder = supervised(create_run(RunStore(tmp_path), options))
    ask_tensorflow("race_here", folder=str(folder.path))
    race = read_race(folder)
    assert race.candidates[0].sentence.endswith(EMULATED_NOTE)
    for arm in race.arms:
        assert arm.idle.device == EMULATED_ACCELERATOR
        assert "Not computed" in arm.loss.reason
    lengths = []
    for number in range(2):
        trace = read_trace(next(folder.arm(number).path.rglob("*.xplane.pb")))
        lengths.append(trace.plane(EMULATED_PLANE).lines[0].duration_ns.tolist())
    both = list(zip(*lengths, strict=False))  # a busy machine stops one profiler later than the other
    assert len(set(both)) > 1
    assert all(one == other for one, other in both)
