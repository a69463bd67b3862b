"""How far predictions are off, beyond what the races themselves leave open."""

from collections.abc import Sequence

import numpy as np
from scipy import stats

from benchmarks.predict.record import Outcome

MEDIAN_BUDGET, P90_BUDGET = 10.0, 25.0


def error_percent(outcome: Outcome) -> float:
    """Return how far the predicted ratio lies outside of the raced interval, percent of the nearer bound."""
    assert outcome.predicted is not None
    assert outcome.low is not None
    assert outcome.high is not None
    low = max(outcome.low, 1e-6)
    return 100.0 * max(0.0, outcome.predicted / outcome.high - 1.0, low / outcome.predicted - 1.0)


def report(outcomes: Sequence[Outcome]) -> bool:
    """Print the scores; say whether they are within the budget."""
    known = [outcome for outcome in outcomes if outcome.is_known]
    for workload in dict.fromkeys(outcome.workload for outcome in outcomes):
        _print_scores(workload, [outcome for outcome in known if outcome.workload == workload])
    median, p90 = _print_scores("all", known)
    for outcome in outcomes:
        if not outcome.is_known:
            why = outcome.binding if outcome.predicted is None else "The race was too short to give an interval."
            print(f"  not scored: {outcome.workload}, {outcome.change}: {why}")
    for outcome in sorted(known, key=error_percent, reverse=True):
        if error_percent(outcome) > MEDIAN_BUDGET:
            print(
                f"  missed by {error_percent(outcome):3.0f} %: {outcome.workload}, {outcome.change}: predicted "
                f"{outcome.predicted:.2f} ({outcome.binding}), raced {outcome.ratio:.2f} "
                f"({outcome.low:.2f} to {outcome.high:.2f})"
            )
    return median <= MEDIAN_BUDGET and p90 <= P90_BUDGET


def _print_scores(name: str, known: Sequence[Outcome]) -> tuple[float, float]:
    if len(known) < 3:
        print(f"{name}: too few outcomes to score")
        return np.inf, np.inf
    errors = [error_percent(outcome) for outcome in known]
    median, p90 = float(np.median(errors)), float(np.percentile(errors, 90))
    noise = [50.0 * (outcome.high - outcome.low) / outcome.ratio for outcome in known]
    rank = stats.spearmanr([outcome.predicted for outcome in known], [outcome.ratio for outcome in known]).statistic
    plain = np.median([100 * abs(np.log(outcome.predicted / outcome.ratio)) for outcome in known])
    sign = np.mean([(outcome.predicted < 1) == (outcome.ratio < 1) for outcome in known])
    print(
        f"{name}: {len(known)} changes; beyond the interval median {median:.1f} %, 90th percentile {p90:.1f} %; noise floor "
        f"± {np.median(noise):.1f} %; plain median {plain:.1f} %; rank correlation {rank:.2f}; right direction {100 * sign:.0f} %"
    )
    return median, p90
