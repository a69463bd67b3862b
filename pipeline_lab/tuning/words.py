"""What a search says of its steps, for people."""

from collections import Counter

from pipeline_lab.tuning.halving import Fate, Ratio
from pipeline_lab.tuning.history import Raced, Step
from pipeline_lab.tuning.space import START
from pipeline_lab.units import NS_PER_MS, NS_PER_S, format_duration


def profile_sentence(name: str, step_ms: float, ceiling: float, binds: str) -> str:
    who = "The start" if name == START else f"“{name}”"
    step = format_duration(step_ms * NS_PER_MS)
    return f"{who} takes {step} per step; {binds} is what the step waits for, and free input would make it {ceiling:.2f}× as fast."


def proposal_sentence(looked_at: int, refused: dict[str, int], picks: int, best_gain: float) -> str:
    """Say what was chosen; ``best_gain`` is how many times faster the best is expected to be."""
    left_out = "; ".join(f"{count:,} {reason}" for reason, count in refused.items())
    return (
        f"Of {looked_at:,} configurations {picks} {'races' if picks == 1 else 'race'}; the best is expected to be "
        f"{best_gain:.2f}× as fast{f' (left out: {left_out})' if left_out else ''}."
    )


def end_sentence(winner: str, challenger: str, ratio: Ratio | None, reason: str) -> str:
    """Say who won, by how much, and why the search ended."""
    if challenger == START:
        return f"Nothing was found that is better than the start. {reason}"
    if ratio is None and winner == START:
        return f"The start stays: “{challenger}” led, but the race of the two did not run. {reason}"
    if ratio is None:
        return f"“{challenger}” leads, but it did not meet the start, so its gain is not measured. {reason}"
    found = _gain(ratio)
    if winner == START:
        return f"The start stays: “{challenger}”, the best that was found, takes {found}. {reason}"
    doubt = "" if ratio.high < 1 else "; whether it is faster is undecided"
    return f"“{challenger}” takes {found}{doubt}. {reason}"


def no_time_sentence(reason: str, least_s: float) -> str:
    """Add to why a search ends that its last race did not fit into the budget, and the budget that it would have fitted."""
    return f"{reason} A race of two takes longer than the time that is left; give it {format_duration(least_s * NS_PER_S)} or more."


def _gain(ratio: Ratio) -> str:
    if ratio.low <= 0 or ratio.high == float("inf"):
        return f"about {ratio.ratio:.2f} times the start's time per step, after too few rounds for an interval"
    return f"{ratio.ratio:.2f} times the start's time per step (interval {ratio.low:.2f} to {ratio.high:.2f})"


def describe(step: Step) -> str:
    """Put a step of a search into words."""
    return _raced(step) if isinstance(step, Raced) else step.sentence


def _raced(step: Raced) -> str:
    fates = Counter(Fate(each.fate) for each in step.standings)
    others = [
        f"{fates[fate]} {one if fates[fate] == 1 else many}" for fate, (one, many) in _FATES.items() if fates[fate]
    ]
    return f"Round {step.round}: “{step.winner}” leads{'; ' if others else ''}{', '.join(others)}."


_FATES = {
    Fate.KEPT: ("races on", "race on"),
    Fate.TIED: ("is as fast, but costs more", "are as fast, but cost more"),
    Fate.BEHIND: ("falls behind", "fall behind"),
    Fate.SLOWER: ("is slower for certain", "are slower for certain"),
    Fate.FAILED: ("did not run", "did not run"),
}
