"""How often races and naive comparisons are right, on step series whose truth is known.

Every method gets the same step series: blocks of 10 steps with 2 unmeasured ones before each, 60 blocks. The race may
stop early; the naive methods use all steps.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from benchmarks.race.noise import Noise
from pipeline_lab.statistics.outcome import Outcome, is_settled, judge_ratio
from pipeline_lab.statistics.schedule import draw_order
from pipeline_lab.statistics.sequential import SequentialPlan, SequentialResult, sequential_ratio

FloatArray = NDArray[np.float64]

BLOCK_STEPS, SKIPPED_STEPS = 10, 2
MARGIN = 0.03


@dataclass(frozen=True)
class SimulatedRace:
    """The end of one race, and whether its interval held the truth at every look."""

    result: SequentialResult
    outcome: Outcome
    is_covered: bool


@dataclass(frozen=True)
class Score:
    """What many races at one planted ratio came to, shares 0 to 1.

    Attributes:
        called_different: Races whose interval excludes 1 and is not within the margin.
        wrong_way: Races that named the slower arm as the faster one.
        covered: Races whose interval held the truth at every look.
        pairs: Mean number of pairs used.
        half_width: Median half width of the final interval, relative.
    """

    races: int
    called_different: float
    wrong_way: float
    equivalent: float
    covered: float
    pairs: float
    half_width: float


def score_races(noise: Noise, ratio: float, races: int, plan: SequentialPlan, seed: int = 1) -> Score:
    """Run simulated races of a candidate that takes ``ratio`` times as long as its baseline."""
    rng = np.random.default_rng(seed)
    ends = [_race(draw_pairs(noise, ratio, plan.max_pairs, rng), ratio, plan) for _ in range(races)]
    outcomes = [end.outcome for end in ends]
    wrong = Outcome.FASTER if ratio > 1 else Outcome.SLOWER
    return Score(
        races=races,
        called_different=float(np.mean([outcome in (Outcome.FASTER, Outcome.SLOWER) for outcome in outcomes])),
        wrong_way=float(np.mean([outcome is wrong for outcome in outcomes])) if ratio != 1 else 0.0,
        equivalent=float(np.mean([outcome is Outcome.EQUIVALENT for outcome in outcomes])),
        covered=float(np.mean([end.is_covered for end in ends])),
        pairs=float(np.mean([end.result.pairs for end in ends])),
        half_width=float(np.median([np.sqrt(end.result.high / max(end.result.low, 1e-9)) - 1 for end in ends])),
    )


def draw_pairs(noise: Noise, ratio: float, pairs: int, rng: np.random.Generator) -> FloatArray:
    """Return the log ratios of one race's pairs, arms in random order over one common step series, shape (pairs,)."""
    series = noise.draw(rng, pairs * 2 * (BLOCK_STEPS + SKIPPED_STEPS))
    blocks = series.reshape(pairs, 2, -1)[:, :, SKIPPED_STEPS:].mean(axis=2)
    seed = int(rng.integers(2**31))
    orders = np.array([draw_order(2, number, seed) for number in range(pairs)])
    baseline, candidate = (blocks[orders == arm] for arm in (0, 1))
    return np.asarray(np.log(ratio * candidate / baseline))


def _race(log_ratios: FloatArray, ratio: float, plan: SequentialPlan) -> SimulatedRace:
    is_covered = True
    for pairs in plan.looks:
        result = sequential_ratio(log_ratios[:pairs], plan)
        assert result is not None
        is_covered &= result.low <= ratio <= result.high
        if is_settled(result, MARGIN):
            break
    return SimulatedRace(result, judge_ratio(result, MARGIN), is_covered)


def _welch(baseline: FloatArray, candidate: FloatArray) -> bool:
    return bool(stats.ttest_ind(baseline, candidate, equal_var=False).pvalue < 0.05)


def _mann_whitney(baseline: FloatArray, candidate: FloatArray) -> bool:
    return bool(stats.mannwhitneyu(baseline, candidate).pvalue < 0.05)


def _bootstrap(baseline: FloatArray, candidate: FloatArray) -> bool:
    rng = np.random.default_rng(0)
    means = [rng.choice(arm, (400, arm.size)).mean(axis=1) for arm in (baseline, candidate)]
    low, high = np.quantile(means[1] - means[0], [0.025, 0.975])
    return bool(low > 0 or high < 0)


NAIVE: dict[str, Callable[[FloatArray, FloatArray], bool]] = {
    "A then B, Welch on steps": _welch,
    "A then B, Mann-Whitney on steps": _mann_whitney,
    "A then B, bootstrap of steps": _bootstrap,
}


def score_naive(noise: Noise, ratio: float, races: int, plan: SequentialPlan, seed: int = 1) -> dict[str, float]:
    """Return how often each naive method calls the arms different, on as many steps as a full race measures."""
    rng = np.random.default_rng(seed)
    steps = plan.max_pairs * BLOCK_STEPS
    series = [noise.draw(rng, 2 * steps) for _ in range(races)]
    scores = {
        name: float(np.mean([differs(each[:steps], ratio * each[steps:]) for each in series]))
        for name, differs in NAIVE.items()
    }
    pairs = [draw_pairs(noise, ratio, plan.max_pairs, rng) for _ in range(races)]
    scores["random pairs, paired t at every look, stop at p < 0.05"] = float(
        np.mean([_peeking(each, plan) for each in pairs])
    )
    return scores


def _peeking(log_ratios: FloatArray, plan: SequentialPlan) -> bool:
    return any(stats.ttest_1samp(log_ratios[:pairs], 0).pvalue < 0.05 for pairs in plan.looks)
