"""Successive halving by races: which arms race, which are dropped, and which leads.

Every race includes the leader, so that ratios to it are comparable where several machines share the candidates of one
round. After a round an arm is out when its interval says so: even its lowest ratio is above the highest of some other
arm. Of what is left the better half goes on to a longer race, until one arm is left or the last race is over. What is
closer to the best than what matters counts as fast as it, and of such arms the cheaper ones are the better half. Of an arm
whose race was too short for an interval nothing is said but that; what seems best of them goes on.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import TypeAlias

from pipeline_lab.data_classes import dataclass

RUNGS = (10, 16, 24)
"""Pairs of the first race, the second one, and so on."""


@dataclass(frozen=True)
class Ratio:
    """Time of an arm over the leader's, as one race found it.

    Attributes:
        ratio: Estimate.
        low, high: Its interval; 0 and infinity while nothing is excluded.
    """

    ratio: float
    low: float
    high: float

    @property
    def is_known(self) -> bool:
        """Whether anything is excluded."""
        return self.low > 0 and math.isfinite(self.high)


LEADER = Ratio(1.0, 1.0, 1.0)


class Fate(StrEnum):
    """What a race made of an arm."""

    LEADS = "leads"
    KEPT = "kept"
    """It races on."""
    TIED = "tied"
    """As fast as the leader, but it costs more memory or threads."""
    BEHIND = "behind"
    """Its interval does not exclude it, but it did not reach the better half."""
    SLOWER = "slower"
    """Its interval excludes that it is the best."""
    UNDECIDED = "undecided"
    """Its race was too short to say anything, and there was no room for it in a longer one."""
    FAILED = "failed"
    """It did not run."""


@dataclass(frozen=True)
class ArmVerdict:
    """One arm after one race."""

    arm: str
    ratio: Ratio | None
    fate: Fate

    @property
    def races_on(self) -> bool:
        return self.fate in (Fate.LEADS, Fate.KEPT)


RunRace: TypeAlias = Callable[[str, Sequence[str], int], Mapping[str, Ratio | None]]
"""Races a leader against candidates over a number of pairs; None for a candidate that did not run."""
ReportRace: TypeAlias = Callable[[int, str, Sequence[ArmVerdict]], None]
"""Called after each race: number of the rung, the leader that was raced against, what became of every arm."""
ArmCost: TypeAlias = Callable[[str], tuple[float, ...]]
"""What an arm costs besides its time; compared from left to right."""


def halve(
    arms: Sequence[str],
    race: RunRace,
    report: ReportRace,
    cost: ArmCost,
    *,
    margin: float,
    rungs: Sequence[int] = RUNGS,
    reference: str | None = None,
    is_spent: Callable[[], bool] = lambda: False,
) -> str:
    """Return the best of the arms.

    Args:
        arms: Different ones, the most promising first: it leads at first.
        race: Runs a race.
        report: Hears of every race.
        cost: Decides among arms that are equally fast.
        margin: Smallest relative difference that matters, such as 0.03.
        rungs: Pairs of each race.
        reference: The arm that ratios are relative to in every race; None for the leader of the race before.
        is_spent: Asked after each race; where there is no time for another one, the leader wins.
    """
    alive = list(arms)
    for number, pairs in enumerate(rungs):
        if len(alive) < 2 or (number > 0 and is_spent()):
            break
        leader = reference or alive[0]
        others = [arm for arm in alive if arm != leader]
        room = 1 if number == len(rungs) - 1 else math.ceil(len(alive) / 2)
        verdicts = judge_arms(leader, race(leader, others, pairs), cost, margin=margin, room=room)
        report(number, leader, verdicts)
        alive = [each.arm for each in verdicts if each.races_on]
    return alive[0]


def judge_arms(
    leader: str, found: Mapping[str, Ratio | None], cost: ArmCost, *, margin: float, room: int
) -> list[ArmVerdict]:
    """Say what becomes of every arm of a race, the new leader first, then by their promise.

    Args:
        leader: The arm that ratios are relative to.
        found: Ratio of every other arm, None where it failed.
        cost: Decides among arms that are equally fast.
        margin: Smallest relative difference that matters.
        room: How many may race on at most.
    """
    ran = {leader: LEADER} | {arm: ratio for arm, ratio in found.items() if ratio is not None}
    lowest_high = min(ratio.high for ratio in ran.values())
    best = min(ratio.ratio for ratio in ran.values())
    near = [arm for arm in sorted(ran, key=cost) if ran[arm].ratio <= best * (1 + margin)]
    tied = near if all(ran[arm].is_known for arm in near) else [arm for arm in near if ran[arm].ratio == best][:1]
    order = tied + sorted(set(ran) - set(tied), key=lambda arm: (ran[arm].ratio, arm))
    contenders = [arm for arm in order if ran[arm].low <= lowest_high]
    fates = dict.fromkeys(order, Fate.SLOWER) | dict.fromkeys(contenders, Fate.BEHIND)
    fates |= {arm: Fate.TIED for arm in contenders if arm in tied}
    leads = contenders[0]
    fates |= {arm: Fate.UNDECIDED for arm in contenders if not (ran[arm].is_known and ran[leads].is_known)}
    fates |= dict.fromkeys(contenders[:room], Fate.KEPT)
    fates[leads] = Fate.LEADS
    ranks = list(Fate)
    verdicts = [ArmVerdict(arm, ran[arm], fates[arm]) for arm in sorted(order, key=lambda arm: ranks.index(fates[arm]))]
    return verdicts + [ArmVerdict(arm, None, Fate.FAILED) for arm, ratio in found.items() if ratio is None]
