"""What a search says of its steps, for people."""

from collections import Counter

from pipeline_lab.tuning.halving import Fate, Ratio
from pipeline_lab.tuning.history import Place, Raced, Step
from pipeline_lab.tuning.space import START
from pipeline_lab.units import NS_PER_MS, NS_PER_S, format_duration, format_percent

LEAST_CEILING = 1.01
"""How many times faster the step could become by its input before it is worth a number."""


def profile_sentence(name: str, step_ms: float, ceiling: float, binds: str) -> str:
    who = "The start" if name == START else f"“{name}”"
    step = format_duration(step_ms * NS_PER_MS)
    more = (
        f"could be {ceiling:.2f}× as fast if its input were free"
        if ceiling >= LEAST_CEILING
        else "can hardly be faster by its input"
    )
    return f"{who} takes {step} per step, as long as: {binds}. It {more}."


def proposal_sentence(looked_at: int, refused: dict[str, int], picks: int, best_gain: float) -> str:
    """Say what was chosen; ``best_gain`` is how many times faster the best is expected to be."""
    left_out = "; ".join(f"{count:,} {reason}" for reason, count in refused.items())
    return (
        f"Of {looked_at:,} configurations {picks} {'is' if picks == 1 else 'are'} chosen; the best is expected to be "
        f"{best_gain:.2f}× as fast{f' (left out: {left_out})' if left_out else ''}."
    )


def end_sentence(winner: str, challenger: str, ratio: Ratio | None, reason: str, *, was_raced: bool) -> str:
    """Say who won, by how much, and why the search ended.

    Args:
        winner: Who leads at the end.
        challenger: Who met the start, or was to meet it.
        ratio: Of the challenger's time to the start's, where they met.
        reason: Why the search ended, as a sentence.
        was_raced: The challenger ran in some race, so that it is more than the model's choice.
    """
    if challenger == START:
        return f"Nothing was found that is better than the start. {reason}"
    if ratio is None and winner == START:
        was = "led" if was_raced else "was the model's choice"
        return f"The start stays: “{challenger}” {was}, but the race of the two did not run. {reason}"
    if ratio is None and not was_raced:
        return f"“{challenger}” is only the model's choice: it was not raced, so its gain is not measured. {reason}"
    if ratio is None:
        return f"“{challenger}” leads, but it did not meet the start, so its gain is not measured. {reason}"
    found = _gain(ratio)
    if winner == START:
        return f"The start stays: “{challenger}”, the best that was found, takes {found}. {reason}"
    doubt = "" if ratio.high < 1 else "; whether it is faster is undecided"
    return f"“{challenger}” takes {found}{doubt}. {reason}"


def no_time_sentence(reason: str, least_s: float) -> str:
    """Add to why a search ends that its last race did not fit into the budget, and the budget that it would have fitted."""
    return f"{reason} A race of two takes longer than the time that is left; give the search {format_duration(least_s * NS_PER_S)} or more."


def _gain(ratio: Ratio) -> str:
    than = f"{change_words(ratio.ratio)} time per step than the start"
    if ratio.low <= 0 or ratio.high == float("inf"):
        return f"about {than}, after too few rounds for an interval"
    return f"{than} (interval {interval_words(ratio.low, ratio.high)})"


def change_words(ratio: float | None) -> str:
    """Put a time over another one into words: ``24 % less``."""
    if ratio is None:
        return "–"
    return f"{format_percent(100 * abs(1 - ratio))} {'less' if ratio < 1 else 'more'}"


def interval_words(low: float | None, high: float | None) -> str:
    """Put an interval of such a ratio into words, the smaller gain first; one that others are measured against has none."""
    if low is None or high is None or low == high:
        return "–"
    ends = [change_words(high), change_words(low)]
    word = ends[0].rpartition(" ")[2]
    return f"{ends[0].removesuffix(f' {word}') if ends[1].endswith(word) else ends[0]} to {ends[1]}"


def outcome_words(place: Place, *, goes_on: bool) -> str:
    """Say what became of a configuration; nothing is in the race any more where the search does not go on."""
    if place.configuration == START:
        return "the start" if place.fate is not Fate.LEADS else "the start stays"
    if place.fate is Fate.KEPT and not goes_on:
        return "left undecided"
    return _OUTCOMES[place.fate]


def place_cells(place: Place, reference: str, *, goes_on: bool) -> tuple[str, str, str, str, str]:
    """Return a row of what was tried: configuration, raced, interval, predicted, outcome."""
    outcome = outcome_words(place, goes_on=goes_on)
    if place.configuration == reference:
        return (place.configuration, "–", "–", "–", outcome)
    numbers = (change_words(place.ratio), interval_words(place.low, place.high), change_words(place.predicted))
    return (place.configuration, *numbers, outcome)


_OUTCOMES = {
    Fate.LEADS: "is the best",
    Fate.KEPT: "still in the race",
    Fate.TIED: "as fast, but costs more",
    Fate.BEHIND: "not as good",
    Fate.SLOWER: "slower for certain",
    Fate.FAILED: "did not run",
}


def describe(step: Step) -> str:
    """Put a step of a search into words."""
    return _raced(step) if isinstance(step, Raced) else step.sentence


def _raced(step: Raced) -> str:
    fates = Counter(Fate(each.fate) for each in step.standings)
    others = [
        f"{fates[fate]} {one if fates[fate] == 1 else many}" for fate, (one, many) in _FATES.items() if fates[fate]
    ]
    return f"Round {step.round}, {len(step.standings)} raced: “{step.winner}” is the best{'; ' if others else ''}{', '.join(others)}."


_FATES = {
    Fate.KEPT: ("races on", "race on"),
    Fate.TIED: ("is as fast, but costs more", "are as fast, but cost more"),
    Fate.BEHIND: ("falls behind", "fall behind"),
    Fate.SLOWER: ("is slower for certain", "are slower for certain"),
    Fate.FAILED: ("did not run", "did not run"),
}
