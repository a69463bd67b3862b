"""Which arm runs when, and which rounds count.

A round is one block of every arm in an order drawn at random for each round: the proof behind
:mod:`pipeline_lab.statistics.sequential` rests on these coins and on nothing else.
"""

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.statistics.signed_ranks import FloatArray


def draw_order(arms: int, round_number: int, seed: int) -> tuple[int, ...]:
    """Return the order of the arms in one round; every order is equally likely and rounds are independent."""
    order = np.random.default_rng((seed, round_number)).permutation(arms)
    return tuple(int(arm) for arm in order)


def undisturbed_rounds(load: FloatArray, limit: float) -> NDArray[np.bool_]:
    """Say which rounds count: those in which no arm's block met much more load than was usual until then.

    All blocks of a round go together. Since the load is other programs', it does not depend on which arm ran, and
    leaving out by it cannot favor an arm. A later round never changes what was said of an earlier one.

    Args:
        load: What other programs used while each block ran, shape (rounds, arms); NaN where it was not measured,
            infinite where the block does not count in any case.
        limit: How far above the median of the rounds so far a load may lie.
    """
    highest = np.where(np.isnan(load), -np.inf, load).max(axis=1)
    usual = [_median(load[: number + 1]) for number in range(len(load))]
    return np.asarray(highest <= np.array(usual) + limit, dtype=np.bool_)


def _median(load: FloatArray) -> float:
    known = load[np.isfinite(load)]
    return float(np.median(known)) if known.size else 0.0
