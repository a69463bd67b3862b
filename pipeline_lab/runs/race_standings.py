"""Interim results of a race, from its blocks so far; the worker uses them after every round, readers at the end."""

import math

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline_lab.data_classes import dataclass
from pipeline_lab.options.race_options import RaceRules
from pipeline_lab.statistics.outcome import GateAnswer, Outcome, answer_gate, is_settled, judge_ratio
from pipeline_lab.statistics.paired import log_ratios
from pipeline_lab.statistics.schedule import undisturbed_rounds
from pipeline_lab.statistics.sequential import SequentialPlan, SequentialResult, sequential_ratio

FloatArray = NDArray[np.float64]

ROUNDS_PER_PAIR = 1.5
"""Disturbed rounds are repeated, up to this multiple of the planned number in all."""


@dataclass(frozen=True, eq=False)
class Rounds:
    """The complete rounds of a race, in order.

    Attributes:
        step_ns: Mean time of a measured step, shape (rounds, arms).
        load_percent: Share of the cores that other programs used; NaN if unknown, infinite where the device lowered its
            clocks; shape (rounds, arms).
    """

    step_ns: FloatArray
    load_percent: FloatArray

    def kept(self, max_extra_percent: float) -> NDArray[np.bool_]:
        """Say which rounds count, shape (rounds,)."""
        return undisturbed_rounds(self.load_percent, max_extra_percent)

    @property
    def throttled(self) -> int:
        """Rounds in which the device lowered its clocks because of heat or power."""
        return int(np.isinf(self.load_percent).any(axis=1).sum())


@dataclass(frozen=True)
class ArmStanding:
    """Interim result of one candidate.

    Attributes:
        arm: Number of the candidate; the baseline is 0.
        result: Its ratio to the baseline, None before the first look.
        outcome: Its classification.
        gate: Whether it is slower than the limit; None without a limit.
        is_over: It needs no more rounds.
    """

    arm: int
    result: SequentialResult | None
    outcome: Outcome
    gate: GateAnswer | None
    is_over: bool


def read_rounds(blocks: pa.Table, arms: int) -> Rounds:
    """Arrange a table of blocks (``BLOCKS``) by round; an incomplete round is left out."""
    rounds, places, counts = np.unique(blocks["round"].to_numpy(), return_inverse=True, return_counts=True)
    step_ns, load = (np.full((rounds.size, arms), np.nan) for _ in range(2))
    arm = blocks["arm"].to_numpy()
    step_ns[places, arm] = blocks["wall_ns"].to_numpy() / blocks["steps"].to_numpy()
    throttled = blocks["throttled"].to_numpy(zero_copy_only=False)
    load[places, arm] = np.where(throttled, np.inf, blocks["other_load_percent"].to_numpy())
    complete = counts == arms
    return Rounds(step_ns[complete], load[complete])


def plan_looks(options: RaceRules) -> SequentialPlan:
    """Return the looks of a race; several candidates share the permitted error rate."""
    return SequentialPlan(max_pairs=options.pairs, alpha=options.alpha / (options.arm_count - 1))


def max_rounds(options: RaceRules) -> int:
    return math.ceil(ROUNDS_PER_PAIR * options.pairs)


def compared_ns(step_ns: FloatArray, options: RaceRules) -> FloatArray:
    """Return the compared times, ns: per step, or per example where the batch sizes of the arms differ.

    Args:
        step_ns: Mean time of a step, shape (rounds, arms).
        options: Of the race.
    """
    return step_ns if options.examples_per_step is None else step_ns / np.array(options.examples_per_step)


def counted_ns(rounds: Rounds, options: RaceRules) -> FloatArray:
    """Return the compared times of the rounds that count, ns, shape (rounds, arms)."""
    kept = rounds.kept(options.max_extra_load_percent)
    return compared_ns(rounds.step_ns[kept][: options.pairs], options)


def find_standings(rounds: Rounds, options: RaceRules) -> tuple[ArmStanding, ...]:
    """Return one standing per candidate."""
    times_ns = counted_ns(rounds, options)
    plan = plan_looks(options)
    return tuple(
        _standing(arm, sequential_ratio(log_ratios(times_ns[:, 0], times_ns[:, arm]), plan), options)
        for arm in range(1, options.arm_count)
    )


def _standing(arm: int, result: SequentialResult | None, options: RaceRules) -> ArmStanding:
    limit, margin = options.fail_if_slower_percent, options.margin_percent / 100
    if result is None:
        return ArmStanding(arm, None, Outcome.UNDECIDED, None if limit is None else GateAnswer.UNDECIDED, is_over=False)
    gate = None if limit is None else answer_gate(result, limit / 100)
    is_over = is_settled(result, margin) if gate is None else gate is not GateAnswer.UNDECIDED
    return ArmStanding(arm, result, judge_ratio(result, margin), gate, is_over)
