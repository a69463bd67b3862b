"""Whole races, short ones; the process with TensorFlow is that of the other tests."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline_lab.analysis.causes import GapCause
from pipeline_lab.comparison.race_arms import ArmIdle
from pipeline_lab.comparison.race_result import read_race
from pipeline_lab.options.race_options import RaceOptions
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.options.training import TrainingOptions
from pipeline_lab.runs.launch.launcher import create_run
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.run_documents import read_files
from pipeline_lab.runs.run_events import PhaseEvent, RaceEvent, read_events
from pipeline_lab.runs.run_folder import RunFolder, read_record
from pipeline_lab.runs.run_tables import BLOCKS, SAMPLES, STEPS, read_table
from pipeline_lab.runs.store import RunStore
from pipeline_lab.stages.batches import BatchStage
from pipeline_lab.stages.delivery import PrefetchStage
from pipeline_lab.stages.functions import MapStage, ParseStage
from pipeline_lab.stages.order import RepeatStage, ShuffleStage
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.read import ReadStage
from pipeline_lab.stages.stores import CacheStage
from pipeline_lab.workloads.images import ImagesWorkload
from pipeline_lab.workloads.synthetic import SyntheticWorkload
from tests.support.patience import unless_late
from tests.support.warm_worker import Ask
from tests.worker.fakes import supervised

pytestmark = pytest.mark.tensorflow

BESIDE_OTHERS: dict[str, Any] = {"pairs": 6, "max_extra_load_percent": 100}
"""No round is left out and repeated because of the tests that run meanwhile."""


def _run(ask_tensorflow: Ask, root: Path, options: RaceOptions) -> RunFolder:
    folder = supervised(create_run(RunStore(root), options))
    ask_tensorflow("race_here", folder=str(folder.path))
    return folder


def _synthetic(prefetch: int) -> RunOptions:
    return RunOptions(
        name=f"prefetch {prefetch}",
        workload=SyntheticWorkload(map_ms=1.0, compute_ms=1.0, examples_per_file=(500, 500)),
        pipeline=PipelineOptions(
            stages=(
                ReadStage(),
                RepeatStage(),
                MapStage(),
                BatchStage(size=8),
                PrefetchStage(buffer_size=prefetch),
            ),
            tensorflow_rewrites=False,
        ),
    )


@unless_late
def test_a_deep_buffer_wins_nothing_by_filling_while_the_other_arm_runs(ask_tensorflow: Ask, tmp_path: Path) -> None:
    arms = (_synthetic(2), _synthetic(40))
    options = RaceOptions(arms=arms, block_steps=5, **BESIDE_OTHERS)
    folder = _run(ask_tensorflow, tmp_path, options)
    blocks = read_table(folder.blocks, BLOCKS)
    step_ns = blocks["wall_ns"].to_numpy() / blocks["steps"].to_numpy()
    arm, drained = blocks["arm"].to_numpy(), blocks["drained_batches"].to_numpy()
    assert np.median(drained[arm == 0]) <= 3
    assert np.median(drained[arm == 1]) >= 30
    # afterwards each arm recorded a window, which tells what its device waits for
    for result in read_race(folder).arms:
        assert isinstance(result.idle, ArmIdle)
        assert 0 < result.idle.idle_percent < 100
        assert result.idle.cause is GapCause.INPUT_WAIT  # 8 ms to prepare a batch, 1 ms to train on it
    # Forty ready batches would make five steps of 8 ms look like ones of 1 ms.
    assert np.median(step_ns[arm == 1]) > 0.5 * np.median(step_ns[arm == 0])
    *_, last, after = read_events(folder.events)
    assert isinstance(last, RaceEvent)
    assert isinstance(after, PhaseEvent)
    assert read_record(folder).status.state is RunState.RUNNING


def test_pauses_do_not_let_a_prefetch_grow_whose_depth_is_left_to_tf_data(ask_tensorflow: Ask) -> None:
    found = ask_tensorflow("tests.worker.race.script_race_tasks:prefetched_in_a_race")
    assert found == {"tuned": [8], "fixed": [3], "none": [8]}


def test_arms_begin_with_the_same_weights_and_keep_their_own_tables(ask_tensorflow: Ask, tmp_path: Path) -> None:
    stages = (ReadStage(), ParseStage(), CacheStage(), ShuffleStage(buffer_size=20), RepeatStage(), BatchStage(size=10))
    plain = RunOptions(
        name="plain",
        workload=ImagesWorkload(data="digits", image_size=16, examples_per_file=(40, 60)),
        pipeline=PipelineOptions(stages=stages),
        training=TrainingOptions(seed=3),
    )
    ahead = plain.model_copy(
        update={"name": "ahead", "pipeline": PipelineOptions(stages=(*stages, PrefetchStage(buffer_size=2)))}
    )
    folder = _run(ask_tensorflow, tmp_path, RaceOptions(arms=(plain, ahead), block_steps=3, **BESIDE_OTHERS))
    first_losses = []
    for number in range(2):
        part = folder.arm(number)
        assert list(part.profile.glob("*/*.xplane.pb"))
        assert not part.scratch.exists(), "nothing would delete it"
        steps = read_table(part.steps, STEPS)
        assert sum(not warmup for warmup in steps["warmup"].to_pylist()) >= 18
        assert [file.records for file in read_files(part.files)] == [40, 60]
        assert set(read_table(part.samples, SAMPLES)["file"].to_pylist()) == {0, 1}
        first_losses.append(steps["loss"][0].as_py())
    assert first_losses[0] == pytest.approx(first_losses[1], rel=0.5)
