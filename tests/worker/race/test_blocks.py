import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from pipeline_lab.errors import DataError
from pipeline_lab.options.race_options import RaceOptions
from pipeline_lab.runs.run_events import NoteEvent, RaceEvent, read_events
from pipeline_lab.runs.run_tables import BLOCKS, SAMPLES, STEPS, TableWriter, read_table
from pipeline_lab.stages.batches import BatchStage
from pipeline_lab.stages.functions import MapStage
from pipeline_lab.stages.order import ShuffleStage
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.read import ReadStage
from pipeline_lab.stages.stores import CacheStage
from pipeline_lab.worker.job_context import Job, StopRequest
from pipeline_lab.worker.race import resting
from pipeline_lab.worker.race import rounds as race
from pipeline_lab.worker.race.blocks import Arm, BlockLoad, LoadMeter, count_epoch_batches
from pipeline_lab.worker.race.resting import LEAD_STEPS
from pipeline_lab.worker.race.rounds import RaceJob, RaceRunner
from pipeline_lab.worker.record.step_recorder import StepRecorder
from pipeline_lab.worker.train.training_steps import PythonSteps, TakenStep
from tests.support.presets import SYNTHETIC
from tests.worker.fakes import FakeTrainer, make_job


class Pipeline:
    """An iterator with a buffer that fills whenever nobody takes from it."""

    def __init__(self, depth: int, *, batches: int = 10_000, autotuned: int = 0, pace: int = 10_000) -> None:
        self.depth, self.ready, self.taken, self.pace = depth, 0, 0, pace
        self._batches, self._autotuned = batches, autotuned

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> dict[str, Any]:
        if self.taken == self._batches:
            raise StopIteration
        self.ready = max(0, self.ready - 1)
        self.taken += 1
        if self.taken % self.pace == 0:  # the pipeline works on while it is drained
            self.ready = min(self.depth, self.ready + 1)
        return {"id": Id(self.taken - 1)}

    def batches(self) -> float:
        return float(self.ready)

    def elements(self) -> int:
        self.ready = min(self.depth, self.ready + 1)
        return self.ready

    def has_room(self) -> bool:
        return self.ready < self.depth

    def tuned(self) -> tuple[Any, ...]:
        return (("parallelism", min(self.taken, self._autotuned)),) if self._autotuned else ()


class Id:
    def __init__(self, number: int) -> None:
        self._number = number

    def __array__(self, *_: Any, **__: Any) -> Any:
        return np.array([self._number])


class CalmMeter(LoadMeter):
    def __init__(self) -> None:
        pass

    def start(self) -> None:
        pass

    def read(self) -> BlockLoad:
        return BlockLoad(cpu_ns=1000, other_load_percent=1.0, throttled=False)


@dataclass(frozen=True)
class Lane:
    arm: Arm
    job: Job
    trainer: FakeTrainer
    recorder: StepRecorder


MakeLane = Callable[[Pipeline], Lane]


@pytest.fixture
def make_lane(tmp_path: Path) -> Iterator[MakeLane]:
    lanes: list[Lane] = []

    def make(pipeline: Pipeline) -> Lane:
        job, trainer = make_job(tmp_path / str(len(lanes)), SYNTHETIC.options), FakeTrainer()
        recorder = StepRecorder(job, trainer, is_asynchronous=False, has_ids=True)
        lanes.append(
            Lane(
                Arm(job, trainer, PythonSteps(trainer, job.clock), recorder, iter(pipeline), pipeline),
                job,
                trainer,
                recorder,
            )
        )
        return lanes[-1]

    yield make
    for lane in lanes:
        lane.recorder.close()


@pytest.mark.slow
def test_what_an_idle_arm_has_buffered_is_gone_before_its_block(make_lane: MakeLane) -> None:
    pipeline = Pipeline(depth=64)
    arm = make_lane(pipeline).arm
    arm.warm_up(0, limit_s=10)
    assert pipeline.ready == 64, "it has filled its buffer while it rested"
    first = arm.run_block(5, CalmMeter())
    arm.rest()
    second = arm.run_block(5, CalmMeter())
    assert (first.drained_batches, second.drained_batches) == (64, 64)


def test_what_comes_in_while_an_arm_is_drained_goes_too(make_lane: MakeLane) -> None:
    pipeline = Pipeline(depth=64, pace=2)
    arm = make_lane(pipeline).arm
    arm.rest()
    assert arm.run_block(1, CalmMeter()).drained_batches == 127  # 64, and one for every two of them


def test_a_pipeline_that_is_as_fast_as_the_draining_is_not_drained_for_ever(make_lane: MakeLane) -> None:
    pipeline = Pipeline(depth=4, pace=1)
    arm = make_lane(pipeline).arm
    arm.rest()
    assert arm.run_block(1, CalmMeter()).drained_batches == resting.MOST_DRAINED * 4


def test_a_race_that_was_asked_to_stop_waits_for_no_buffer(make_lane: MakeLane) -> None:
    lane = make_lane(pipeline := Pipeline(depth=64))
    lane.job.stop.request()
    lane.arm.rest()
    assert pipeline.ready == 1, "it was looked at once"


def test_a_slow_pipeline_is_waited_for_until_its_prefetch_is_full(
    make_lane: MakeLane, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Slow(Pipeline):
        looks = 0

        def elements(self) -> int:
            self.looks += 1
            return super().elements() if self.looks % 20 == 0 else self.ready

    monkeypatch.setattr(resting, "MIN_PATIENCE_S", 0.001)
    pipeline = Slow(depth=3)
    make_lane(pipeline).arm.rest()
    assert pipeline.ready == 3


def test_an_arm_that_was_stopped_with_a_full_buffer_goes_on_with_a_full_one(make_lane: MakeLane) -> None:
    pipeline = Pipeline(depth=8)
    arm = make_lane(pipeline).arm
    arm.run_block(2, CalmMeter())
    arm.rest()
    arm._resting._left_batches = 8.0  # as a pipeline leaves it that is faster than its consumer
    assert arm.run_block(2, CalmMeter()).drained_batches == 0


def test_only_the_measured_steps_count_and_samples_have_no_holes(make_lane: MakeLane) -> None:
    pipeline = Pipeline(depth=3)
    lane = make_lane(pipeline)
    lane.arm.rest()
    block = lane.arm.run_block(4, CalmMeter())
    lane.recorder.close()
    steps = read_table(lane.job.folder.steps, STEPS)
    assert (block.first_step, block.steps, block.drained_batches) == (LEAD_STEPS, 4, 3)
    assert steps["warmup"].to_pylist() == [True] * LEAD_STEPS + [False] * 4
    assert 0 < block.wait_ns < block.wall_ns
    samples = read_table(lane.job.folder.samples, SAMPLES)
    assert samples["record"].to_pylist() == samples["step"].to_pylist() == list(range(3 + LEAD_STEPS + 4))


def test_an_arm_takes_several_steps_per_call_where_its_loop_does(make_lane: MakeLane) -> None:
    class InCalls(PythonSteps):
        per_call = 3
        calls: ClassVar[list[int]] = []

        def take(self, batches: Iterator[Any], most: int) -> Sequence[TakenStep]:
            self.calls.append(most)
            return [one for _ in range(most) for one in super(InCalls, self).take(batches, 1)]

    lane = make_lane(Pipeline(depth=3))
    lane.arm._calls = InCalls(lane.trainer, lane.job.clock)
    lane.arm.rest()
    block = lane.arm.run_block(8, CalmMeter())
    lane.recorder.close()
    assert InCalls.calls == [LEAD_STEPS, 3, 3, 2]
    assert block.steps == 8
    assert read_table(lane.job.folder.steps, STEPS)["step"].to_pylist() == list(range(LEAD_STEPS + 8))


def test_warming_up_teaches_the_model_nothing(make_lane: MakeLane) -> None:
    lane = make_lane(Pipeline(depth=2))
    assert lane.arm.warm_up(20, limit_s=10) is None
    assert lane.trainer.steps == 0


def test_a_cache_that_is_not_full_in_time_is_said(make_lane: MakeLane) -> None:
    arm = make_lane(Pipeline(depth=2)).arm
    sentence = arm.warm_up(1000, limit_s=0)
    assert sentence is not None
    assert "The cache was not full" in sentence


def test_the_autotuner_is_waited_for(make_lane: MakeLane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resting, "MIN_TUNING_S", 0.01)
    pipeline = Pipeline(depth=2, autotuned=30)
    arm = make_lane(pipeline).arm
    assert arm.warm_up(0, limit_s=10) is None
    assert pipeline.taken > 30
    restless = make_lane(Pipeline(depth=2, autotuned=10**9)).arm
    assert "AUTOTUNE" in str(restless.warm_up(0, limit_s=0.05))


def test_data_that_end_are_said(make_lane: MakeLane) -> None:
    arm = make_lane(Pipeline(depth=2, batches=3)).arm
    with pytest.raises(DataError, match="ended during the race"):
        arm.run_block(10, CalmMeter())


def test_an_epoch_is_counted_only_where_there_is_a_cache() -> None:
    plain = (ReadStage(), MapStage(), BatchStage(size=10))
    cached = (ReadStage(), CacheStage(), ShuffleStage(buffer_size=50), MapStage(), BatchStage(size=10))
    options = SYNTHETIC.options
    for stages, batches in ((plain, 0), (cached, 16)):  # (100 + 50) / 10, and one for the end of the data
        changed = options.model_copy(update={"pipeline": PipelineOptions(stages=stages)})
        assert count_epoch_batches(changed, records=100) == batches
    assert count_epoch_batches(options.model_copy(update={"pipeline": PipelineOptions(stages=cached)}), None) == 0


def _race(make_lane: MakeLane, **options: Any) -> tuple[Job, RaceOptions]:
    """Run a race of two alike arms on fakes."""
    chosen = RaceOptions(arms=(SYNTHETIC.options, SYNTHETIC.options), block_steps=2, **options)
    lanes = [make_lane(Pipeline(depth=1)) for _ in range(2)]
    return _run(chosen, lanes), chosen


def _run(options: RaceOptions, lanes: list[Lane]) -> Job:
    job = lanes[0].job
    with contextlib.closing(TableWriter(job.folder.blocks, BLOCKS)) as table:
        RaceRunner(RaceJob(options, job.log, job.stop, table), [lane.arm for lane in lanes], CalmMeter()).run()
    return job


@pytest.mark.slow
def test_every_round_runs_every_arm_once_in_an_order_of_its_own(make_lane: MakeLane) -> None:
    job, options = _race(make_lane, pairs=6)
    rounds: dict[int, list[int]] = {}
    for block in read_table(job.folder.blocks, BLOCKS).to_pylist():
        rounds.setdefault(block["round"], []).append(block["arm"])
    assert {tuple(order) for order in rounds.values()} == {(0, 1), (1, 0)}
    standings = [event for event in read_events(job.folder.events) if isinstance(event, RaceEvent)]
    assert standings[-1].kept_rounds == options.pairs
    assert standings[0].standings == [
        {"arm": 1, "pairs": 0, "ratio": None, "low": None, "high": None, "outcome": "undecided"}
    ]


@pytest.mark.slow
def test_every_block_begins_right_after_a_rest(make_lane: MakeLane, monkeypatch: pytest.MonkeyPatch) -> None:
    happened: list[str] = []
    rest, run_block, find = Arm.rest, Arm.run_block, race.find_standings
    monkeypatch.setattr(Arm, "rest", lambda arm: (happened.append("rest"), rest(arm))[1])
    monkeypatch.setattr(Arm, "run_block", lambda arm, *a: (happened.append("block"), run_block(arm, *a))[1])
    monkeypatch.setattr(race, "find_standings", lambda *a: (happened.append("look"), find(*a))[1])
    _race(make_lane, pairs=8)
    assert all(happened[place - 1] == "rest" for place, what in enumerate(happened) if what == "block" and place)
    assert happened.count("look") == 3, "before the first look, and at 6 and 8 rounds"


def test_a_race_ends_with_its_time(make_lane: MakeLane) -> None:
    job, _ = _race(make_lane, pairs=500, max_seconds=0.001)
    events = read_events(job.folder.events)
    assert len([event for event in events if isinstance(event, RaceEvent)]) == 1
    assert [event.sentence for event in events if isinstance(event, NoteEvent)] == [
        "The time was up after 1 of 500 rounds; give the race more time for more."
    ]


def test_a_race_that_is_stopped_leaves_whole_blocks(make_lane: MakeLane) -> None:
    lanes = [make_lane(Pipeline(depth=1)) for _ in range(2)]
    lanes[0].job.stop.is_set = True
    job = _run(RaceOptions(arms=(SYNTHETIC.options, SYNTHETIC.options)), lanes)
    assert read_table(job.folder.blocks, BLOCKS).num_rows == 0


class Ended(Pipeline):
    """A pipeline whose prefetch has read its input to the end of the epoch: it has room that nothing will fill."""

    def elements(self) -> int:
        return self.ready

    def has_room(self) -> bool:
        return True


def test_a_prefetch_at_the_end_of_its_epoch_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resting, "MAX_FILLING_S", 1e9)
    stop = StopRequest()
    rests = resting.Resting(Ended(depth=2), stop)
    monkeypatch.setattr(resting, "UNKNOWN_STUCK_S", 0.01)
    rests.rest()
    rests.begin(step_s=1e-6)
    rests.rest()


class Restarting(Pipeline):
    """A pipeline that is made again with every look, so that its parameters start again."""

    looks = 0

    def tuned(self) -> tuple[Any, ...]:
        self.looks += 1
        return ((self.looks, "parallelism", 1.0),)


def test_a_pipeline_that_begins_again_with_each_epoch_has_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resting, "MIN_TUNING_S", 0.05)
    tuning = resting.AutotunerRest(Restarting(depth=1))
    for _ in range(10_000):
        if tuning.is_settled():
            return
        time.sleep(0.005)
    pytest.fail("it counts as unsettled for ever")
