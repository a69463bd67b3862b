"""A race: rounds in which every arm runs one block, in random order, until the answer is known."""

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pipeline_lab.data_classes import dataclass
from pipeline_lab.options.race_options import RaceRules
from pipeline_lab.runs.race_standings import ArmStanding, Rounds, find_standings, max_rounds, plan_looks
from pipeline_lab.runs.run_events import NoteEvent, RaceEvent
from pipeline_lab.runs.run_tables import TableWriter
from pipeline_lab.statistics.schedule import draw_order
from pipeline_lab.worker.job_context import StopRequest
from pipeline_lab.worker.note.event_log import EventLog
from pipeline_lab.worker.race.blocks import Arm, Block, LoadMeter


@dataclass(frozen=True)
class RaceJob:
    """A race in progress."""

    options: RaceRules
    log: EventLog
    stop: StopRequest
    table: TableWriter


@dataclass(frozen=True)
class Turn:
    """A block that is to run.

    Attributes:
        round: Number of the round.
        arm: Number of the arm.
        position: Of the arm in its round.
    """

    round: int
    arm: int
    position: int


class RaceCourse:
    """Says whose turn it is until every candidate's answer is known; whoever runs the blocks enters what came of them.

    Every block, also the first of a round, should start right after a rest: results are computed before the rest, or the
    scheduler of a busy machine would charge the next block for it.
    """

    def __init__(self, job: RaceJob) -> None:
        self._job = job
        self._step_ns: list[list[float]] = []
        self._load_percent: list[list[float]] = []
        self._begun_s = time.monotonic()
        self._look: int | None = None
        self._standings: tuple[ArmStanding, ...] = ()

    @property
    def rounds(self) -> int:
        """Complete rounds so far."""
        return len(self._step_ns) - any(np.isnan(self._step_ns[-1:]).ravel())

    def turns(self) -> Iterator[Turn]:
        """Yield turns until all is known, rounds or time are used up, or the race is stopped; enter each before the next."""
        options = self._job.options
        self._begun_s = time.monotonic()
        for number in range(max_rounds(options)):
            self._step_ns.append([np.nan] * options.arm_count)
            self._load_percent.append([np.nan] * options.arm_count)
            for position, arm in enumerate(draw_order(options.arm_count, number, options.seed)):
                if self._job.stop.is_set:
                    return
                yield Turn(number, arm, position)
            if self._is_over():
                return
        self._note(
            f"Fewer than {options.pairs} of {max_rounds(options)} rounds count: other programs disturbed the rest, or the "
            "device lowered its clocks. Race again on an idle or cooler machine, or raise max_extra_load_percent."
        )

    def enter(self, turn: Turn, block: Block) -> None:
        """Note what came of a turn."""
        self._job.table.append(*_row(turn, block))
        self._step_ns[-1][turn.arm] = block.wall_ns / block.steps
        self._load_percent[-1][turn.arm] = np.inf if block.load.throttled else block.load.other_load_percent

    def _is_over(self) -> bool:
        """Look at what is known after a round."""
        options = self._job.options
        rounds = Rounds(np.array(self._step_ns), np.array(self._load_percent))
        kept = int(rounds.kept(options.max_extra_load_percent).sum())
        self._look_at(rounds, kept)
        self._report(len(self._step_ns), kept, self._standings)
        if kept >= options.pairs or all(standing.is_over for standing in self._standings):
            return True
        if self._elapsed_s > options.max_seconds:
            self._note(f"The time was up after {kept} of {options.pairs} rounds; give the race more time for more.")
            return True
        return False

    def _look_at(self, rounds: Rounds, kept: int) -> None:
        """Update the standings where the plan has a look."""
        look = plan_looks(self._job.options).last_look(kept)
        if not self._standings or look != self._look:
            self._look, self._standings = look, find_standings(rounds, self._job.options)

    def _report(self, rounds: int, kept: int, standings: tuple[ArmStanding, ...]) -> None:
        options = self._job.options
        lines = [describe_standing(standing) for standing in standings]
        self._job.log.write(RaceEvent(rounds, kept, max_rounds(options), self._elapsed_s, options.max_seconds, lines))

    def _note(self, sentence: str) -> None:
        self._job.log.write(NoteEvent(sentence))

    @property
    def _elapsed_s(self) -> float:
        return time.monotonic() - self._begun_s


class RaceRunner:
    """Runs a race over warm arms."""

    def __init__(self, job: RaceJob, arms: Sequence[Arm], meter: LoadMeter) -> None:
        self._job, self._arms, self._meter = job, arms, meter

    def run(self) -> None:
        """Race until all is known, rounds or time are used up, or the race is stopped."""
        course, ran_last = RaceCourse(self._job), None
        for turn in course.turns():
            if ran_last is not None:
                ran_last.rest()
            ran_last = self._arms[turn.arm]
            course.enter(turn, ran_last.run_block(self._job.options.block_steps, self._meter))


def describe_standing(standing: ArmStanding) -> dict[str, Any]:
    """Return a standing for a race's events."""
    result = standing.result
    return {
        "arm": standing.arm,
        "pairs": result.pairs if result else 0,
        "ratio": result.ratio if result else None,
        "low": result.low if result and result.low > 0 else None,
        "high": result.high if result and np.isfinite(result.high) else None,
        "outcome": standing.outcome.value,
    }


def _row(turn: Turn, block: Block) -> tuple[Any, ...]:
    return (
        turn.round,
        turn.arm,
        turn.position,
        block.start_ns,
        block.first_step,
        block.steps,
        block.wall_ns,
        block.wait_ns,
        block.load.cpu_ns,
        block.load.other_load_percent,
        block.load.throttled,
        block.drained_batches,
    )
