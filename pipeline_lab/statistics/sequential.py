"""Compare two arms while the race still runs, at an error rate that looking does not raise.

The only assumption is one that we make true ourselves: a coin decides which arm of a pair runs first. Under the
hypothesis "the candidate takes exp(θ) times as long", the order of a pair decides the sign of its ``log ratio - θ``
and nothing else does, so given the sizes these signs are fair, independent coins, however the machine drifts, however
one step depends on the last, and however heavy the tails are.

The test (a group-sequential sign-flip test on signed ranks) draws ``paths - 1`` further sequences of coins. Given the
sizes, the observed sequence and the drawn ones are independent and equally likely, so no rule that treats them alike
can tell which is which. The rule: at look j, of the sequences that have not crossed yet, those with the largest
statistic cross, until ``spent_j × paths`` have crossed in total at most; ties do not cross. Since the observed
sequence is one of ``paths`` that are alike, it ever crosses with a probability of at most ``spent_last = alpha``. An
interval that keeps every θ whose test has not crossed at this look therefore misses the truth at *any* of the looks
with a probability of at most alpha; stopping when one likes what one sees is allowed.

``spent_j = alpha × (pairs_j / max_pairs) ** 2`` is the power family of Kim and DeMets: little is spent early, so that
a race that runs to its end is almost as sharp as one without looks.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.data_classes import dataclass
from pipeline_lab.statistics.signed_ranks import FloatArray, hodges_lehmann, signed_ranks, walsh_averages

SPENDING_POWER = 2


@dataclass(frozen=True)
class SequentialPlan:
    """When the data are looked at, fixed before the first pair.

    Attributes:
        max_pairs: Pairs after which the race ends in any case.
        first_look: Pairs before the first look.
        look_every: Pairs between two looks.
        alpha: Largest chance that any of the intervals misses the true ratio.
        paths: Sequences of coins that are compared, the observed one included.
        seed: Of the drawn sequences.
    """

    max_pairs: int = 30
    first_look: int = 6
    look_every: int = 2
    alpha: float = 0.05
    paths: int = 4000
    seed: int = 20_240_229

    def __post_init__(self) -> None:
        if not (0 < self.alpha < 1 and self.first_look >= 1 and self.look_every >= 1 and self.max_pairs >= 1):
            raise ValueError(f"A sequential plan needs 0 < alpha < 1 and at least one pair per look, got {self}.")

    @property
    def looks(self) -> tuple[int, ...]:
        """Numbers of pairs at which the data are looked at; the last one is ``max_pairs``."""
        return (*range(self.first_look, self.max_pairs, self.look_every), self.max_pairs)

    def last_look(self, pairs: int) -> int | None:
        """Return the latest look that this number of pairs allows, or None before the first."""
        return max((look for look in self.looks if look <= pairs), default=None)


@dataclass(frozen=True)
class SequentialResult:
    """Candidate over baseline, as known at one look.

    Attributes:
        pairs: Pairs that entered.
        ratio: Hodges–Lehmann estimate of candidate time over baseline time; below 1 the candidate is faster.
        low, high: Ends of the interval, valid at every look at once; 0 and infinity while nothing can be excluded.
        p_value: Smallest alpha at which the interval would exclude 1; looking is paid for.
        alpha: The interval misses the true ratio at any look with at most this probability.
    """

    pairs: int
    ratio: float
    low: float
    high: float
    p_value: float
    alpha: float


def sequential_ratio(log_ratios: FloatArray, plan: SequentialPlan) -> SequentialResult | None:
    """Return what is known about the ratio at the latest planned look.

    Args:
        log_ratios: Log of candidate time over baseline time for each pair, in the order in which they ran, shape (n,).
        plan: The looks, fixed beforehand. Pairs after its latest look so far wait for the next one.

    Returns:
        Estimate and interval, or None before the first look.
    """
    pairs = plan.last_look(len(log_ratios))
    if pairs is None:
        return None
    seen = np.asarray(log_ratios, dtype=np.float64)[:pairs]
    low, high = _log_interval(seen, plan)
    return SequentialResult(
        pairs=pairs,
        ratio=float(np.exp(hodges_lehmann(seen))),
        low=float(np.exp(low)),
        high=float(np.exp(high)),
        p_value=_p_value(seen, plan),
        alpha=plan.alpha,
    )


def _log_interval(seen: FloatArray, plan: SequentialPlan) -> tuple[float, float]:
    """Return the ends of the values of θ that have not crossed; 0 is asked directly, since the verdict hangs on it."""
    low, high = _lowest(seen, plan), -_lowest(-seen, plan)
    if low <= 0 <= high or _crosses(_statistics(seen, plan), _allowed_crossings(plan, plan.alpha)):
        return low, high
    return min(low, 0.0), max(high, 0.0)


def _lowest(seen: FloatArray, plan: SequentialPlan) -> float:
    """Bisect for the lower end, between a θ far outside and the center; -inf if even the one outside has not crossed.

    The statistic only changes where θ passes a Walsh average, so one θ between every two of them stands for all.
    """
    steps = np.unique(walsh_averages(seen))
    between = np.concatenate(([steps[0] - 1], (steps[1:] + steps[:-1]) / 2))
    allowed = _allowed_crossings(plan, plan.alpha)

    def crosses(place: int) -> bool:
        return _crosses(_statistics(seen - between[place], plan), allowed)

    if not crosses(0):
        return -np.inf
    outside, inside = 0, max(1, int(np.searchsorted(steps, hodges_lehmann(seen))))
    while inside - outside > 1:
        middle = (inside + outside) // 2
        outside, inside = (middle, inside) if crosses(middle) else (outside, middle)
    return float(steps[outside])


def _p_value(seen: FloatArray, plan: SequentialPlan) -> float:
    statistics = _statistics(seen, plan)
    low, high = 0, plan.paths
    while high - low > 1:
        middle = (low + high) // 2
        if _crosses(statistics, _allowed_crossings(plan, middle / plan.paths)):
            high = middle
        else:
            low = middle
    return high / plan.paths


def _statistics(differences: FloatArray, plan: SequentialPlan) -> NDArray[np.float32]:
    """Return |sum of signed ranks| at each look so far, shape (looks, paths); the observed path is number 0."""
    looks = [look for look in plan.looks if look <= differences.size]
    ranks = np.zeros((len(looks), differences.size), dtype=np.float32)
    for place, look in enumerate(looks):
        ranks[place, :look] = signed_ranks(differences[:look])
    flips = _flips(plan.paths, plan.max_pairs, plan.seed)[: differences.size]
    # Not "@": threads of OpenBLAS spin on for a while, and the next block of a race would pay for them.
    sums: NDArray[np.float32] = np.abs(np.einsum("ij,jk->ik", ranks, flips, optimize=False))
    return sums


@lru_cache(maxsize=4)
def _flips(paths: int, pairs: int, seed: int) -> NDArray[np.float32]:
    """Draw the coins, +1 or -1, shape (pairs, paths); a flip of the observed signs is as good as a new draw."""
    flips = np.random.default_rng(seed).choice(np.array([-1, 1], dtype=np.float32), (paths, pairs))
    flips[0] = 1
    return np.ascontiguousarray(flips.T)


def _allowed_crossings(plan: SequentialPlan, alpha: float) -> list[int]:
    """Return how many paths may have crossed by each look."""
    return [int(alpha * (look / plan.max_pairs) ** SPENDING_POWER * plan.paths + 1e-9) for look in plan.looks]


def _crosses(statistics: NDArray[np.float32], allowed: list[int]) -> bool:
    """Say whether the observed path lies beyond the bound of the last look given."""
    waiting = np.ones(statistics[0].size, dtype=bool)
    bound = np.float32(np.inf)
    for statistic, limit in zip(statistics, allowed, strict=False):
        room = min(limit, waiting.size - 1) - int(waiting.size - waiting.sum())
        bound = _largest(statistic * waiting, room + 1) if room > 0 else np.float32(np.inf)
        waiting &= statistic <= bound
    return bool(statistics[-1][0] > bound)


def _largest(values: NDArray[np.float32], rank: int) -> np.float32:
    """Return the rank-th largest value; what lies strictly above it is fewer than rank values."""
    place = values.size - rank
    return np.float32(np.partition(values, place)[place])
