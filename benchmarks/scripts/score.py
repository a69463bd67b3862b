"""Hold what `watch` said of a script against the truth that was measured before."""

import re
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from benchmarks.scripts.entries import Entry

SMALL_PERCENT, LARGE_PERCENT = 5.0, 20.0
"""Below the first nothing is lost to input; from the second on it is the name of the job. Between them either is right."""
LEAST_GAIN_PERCENT = 5.0
"""A change that gains less, or less than twice what two measurements of the same differ by, is not worth suggesting."""
NEAR_PERCENT = 10.0
"""By how much a predicted gain may miss the measured one, beyond the measurement's own interval."""

WORDS = {
    "parallel": r"num_parallel_calls|in parallel|calls at once|as many calls",
    "prefetch": r"prefetch|overlap|ahead",
    "cache": r"\bcache\b",
    "vectorize": r"batch before|before (the )?(map|batch)|whole batch|vectori|per batch|gather",
    "tf-function": r"tf\.function",
    "workers": r"workers",
    "interleave": r"interleave|num_parallel_reads|several files",
    "shuffle": r"shuffle",
    "rewrite": r"TensorFlow ops|in TensorFlow|whole batch",
    "xla": r"jit_compile|XLA",
    "fewer-calls": r"steps_per_execution|several steps|steps in one call",
    "callbacks": r"callback|logging|metrics|every few steps|print",
    "repeat": r"repeat",
}
"""How a suggestion speaks of each kind of change."""
ONE_ITERATOR = "one iterator for all epochs"
"""A change that nobody has to make to know its gain: what the ends of iterators took."""

DEVICE = frozenset({"device-bound"})
INPUT = frozenset({"input-bound"})
EITHER = frozenset({"device-bound", "input-bound", "host-contention"})
SHARED = frozenset({"input-bound", "host-contention"})
DISPATCH = frozenset({"dispatch-bound", "idle-other"})


@dataclass(frozen=True)
class Truth:
    """What is true of a script.

    Attributes:
        step_ms, compute_ms, input_ms: The end-to-end step, the compute-only step, and the dataset alone, per step.
        steady_ms: The step apart from the ends of iterators.
        spread_percent: Difference of two measurements of the unchanged script.
        gains_percent: Of each change: how much shorter that step becomes; what the ends take, of the whole step.
        intervals_percent: Between what bounds its measurements lie.
        classes: Verdicts that are right.
        steady_classes: Those of a run in which no end of an iterator sleeps.
    """

    step_ms: float
    compute_ms: float
    input_ms: float
    steady_ms: float
    spread_percent: float
    gains_percent: dict[str, float]
    intervals_percent: dict[str, tuple[float, float]]
    classes: frozenset[str]
    steady_classes: frozenset[str]

    @property
    def best(self) -> str | None:
        """The change that helps most; None where none helps."""
        found = max(self.gains_percent, key=self.gains_percent.__getitem__, default=None)
        if found is None or self.gains_percent[found] < max(LEAST_GAIN_PERCENT, 2 * self.spread_percent):
            return None
        return found

    def of_run(self, step_ms: float | None, ends_percent: float) -> "Truth":
        """Return what is true of a run: whether ends of iterators sleep is chance, and a run's own.

        Args:
            step_ms: Its mean step; None where it was not timed.
            ends_percent: What it saw its iterators' ends take. To save it is right as far as the script is faster without.
        """
        if step_ms is None:
            return self
        slower_percent = 100.0 * max(0.0, 1.0 - self.steady_ms / step_ms)
        ended_percent = min(ends_percent, slower_percent)
        left = 1.0 - ends_percent / 100.0
        gains = {name: gain * left for name, gain in self.gains_percent.items()} | {ONE_ITERATOR: ended_percent}
        low, high = self.intervals_percent[ONE_ITERATOR]
        intervals = {name: (low * left, high * left) for name, (low, high) in self.intervals_percent.items()}
        intervals[ONE_ITERATOR] = min(low, ended_percent), max(high, slower_percent)
        slept = ended_percent >= self.gains_percent[ONE_ITERATOR] / 2
        classes = self.classes if slept else self.classes | self.steady_classes
        if ended_percent >= SMALL_PERCENT:
            classes |= {"idle-other"}
        return replace(self, gains_percent=gains, intervals_percent=intervals, classes=classes)


def find_truth(entry: Entry, measured: dict[str, Any]) -> Truth:
    as_written, ends_ms = measured["as_written_ms"], measured["ends_ms"]
    step_ms = sum(as_written) / len(as_written)
    own_ms = _without(as_written, ends_ms[-len(as_written) :])
    mean_ms = sum(own_ms) / len(own_ms)
    gains: dict[str, float] = {}
    intervals: dict[str, tuple[float, float]] = {}
    for name, found in measured["changes_ms"].items():
        changed_ms = _without(found, measured["change_ends_ms"][name])
        gains[name] = 100.0 * (1.0 - sum(changed_ms) / len(changed_ms) / mean_ms)
        intervals[name] = _gain(max(changed_ms), min(own_ms)), _gain(min(changed_ms), max(own_ms))
    kinds = {change.name: change.kind for change in entry.changes}
    compute_ms = sum(measured["compute_ms"]) / len(measured["compute_ms"])
    input_ms = measured["input_ms"]
    by_kind = {kinds[name]: gain for name, gain in gains.items()}
    ended_ms = step_ms - mean_ms
    gains[ONE_ITERATOR] = 100.0 * ended_ms / step_ms
    intervals[ONE_ITERATOR] = (100.0 * min(ends_ms) / step_ms, 100.0 * max(ends_ms) / step_ms)
    classes = steady = _classes(mean_ms, compute_ms, input_ms, measured["wait_ms"], by_kind)
    if max(ends_ms) >= SMALL_PERCENT / 100.0 * step_ms:
        classes |= {"idle-other"}
    if min(ends_ms) >= LARGE_PERCENT / 100.0 * step_ms:
        classes -= DEVICE
    spread_percent = 100.0 * (max(own_ms) - min(own_ms)) / mean_ms
    if classes == SHARED and 100.0 * (1.0 - compute_ms / min(own_ms)) < LARGE_PERCENT:  # as it was written once
        classes |= DEVICE
    return Truth(step_ms, compute_ms, input_ms, mean_ms, spread_percent, gains, intervals, classes, steady)


def _gain(now_ms: float, was_ms: float) -> float:
    return 100.0 * (1.0 - now_ms / was_ms)


def _without(times_ms: list[float], ends_ms: list[float]) -> list[float]:
    """Return what runs took apart from the ends of their iterators, which sleep by chance and are a change of their own."""
    return [time_ms - end_ms for time_ms, end_ms in zip(times_ms, ends_ms, strict=True)]


def _classes(
    step_ms: float, compute_ms: float, input_ms: float, wait_ms: float | None, gains: dict[str, float]
) -> frozenset[str]:
    """Return the verdicts that are right, from times alone, without the ends of iterators.

    What a step takes beyond the compute-only step is lost to input. It is waiting where the pipeline alone takes nearly as long as the
    step as written, or the loop was seen to wait for most of it; else both may be true: input and compute take turns, or the
    pipeline takes the processor from the step. A step whose own Python and dispatch is most of it is not the device's, and where
    that is more than what is lost to input it is the name of the job just as well.

    What ending iterators takes is neither the input's nor the device's, and chance: each may sleep or not. Where a run lost
    5 % to it, that may be the name of the job too; where each lost 20 %, it is not the device's.
    """
    lost = 100.0 * (1.0 - compute_ms / step_ms)
    launched = max(gains.get("tf-function", 0.0), gains.get("callbacks", 0.0))
    if lost < LARGE_PERCENT <= launched:
        return DISPATCH
    if lost < SMALL_PERCENT:
        return DEVICE | DISPATCH if gains.get("fewer-calls", 0.0) >= LARGE_PERCENT else DEVICE
    if lost < LARGE_PERCENT:  # where more than that is Python between steps, it is the name of the job just as well
        return EITHER | DISPATCH if gains.get("fewer-calls", 0.0) >= max(LARGE_PERCENT, lost) else EITHER
    waits = input_ms >= 0.8 * step_ms or (wait_ms or 0.0) >= (step_ms - compute_ms) / 2
    found = INPUT if waits else SHARED
    return found | DISPATCH if launched >= lost else found


@dataclass(frozen=True)
class Answer:
    """What `watch` said.

    Attributes:
        verdict, cause, confidence, sentence: Of the verdict.
        places: Lines of the script that the verdict names.
        suggestions: Change and predicted gain in percent, None where there is none, in their order.
        run: Path of the run.
        step_ms: Its mean step; None where it was not timed.
        ends_percent: What the ends of its iterators took of its steps.
    """

    verdict: str
    cause: str | None
    confidence: str
    sentence: str
    places: list[str]
    suggestions: list[tuple[str, float | None]]
    run: str
    step_ms: float | None = None
    ends_percent: float = 0.0


@dataclass(frozen=True)
class Mark:
    """One script's marks; None where the question does not arise.

    Attributes:
        name, set: Of the script.
        is_right: Its class.
        is_named: The costly call, by its line; asked where input is lost.
        is_best_first: The best change, or that there is none, among the first two suggestions.
        is_near: The gain predicted for it.
    """

    name: str
    set: str
    truth: Truth
    answer: Answer
    is_right: bool
    is_named: bool | None
    is_best_first: bool
    is_near: bool | None
    rank: int | None = None
    predicted_percent: float | None = None
    notes: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        found = asdict(self)
        found["truth"]["classes"] = sorted(self.truth.classes)
        found["truth"]["steady_classes"] = sorted(self.truth.steady_classes)
        found["truth"]["best"] = self.truth.best
        return found


def mark(entry: Entry, truth: Truth, answer: Answer, text: str) -> Mark:
    """Judge an answer.

    Args:
        entry: The script.
        truth: About it.
        answer: Of `watch`.
        text: Of the script as it ran.
    """
    kinds = {change.name: change.kind for change in entry.changes} | {ONE_ITERATOR: "repeat"}
    truth = truth.of_run(answer.step_ms, answer.ends_percent)
    best = truth.best
    rank, predicted = None, None
    if best is not None:
        found = _find(answer, kinds[best])
        rank, predicted = (None, None) if found is None else (found, answer.suggestions[found][1])
        is_first = rank is not None and rank < 2
    else:  # nothing helps: no more may be promised than a change was seen to gain
        seen = [(kinds[name], high) for name, (_, high) in truth.intervals_percent.items()]
        is_first = all(
            gain - max([0.0, *(true for kind, true in seen if _is_of(change, kind))])
            <= NEAR_PERCENT + truth.spread_percent
            for change, gain in answer.suggestions[:2]
            if gain is not None
        )
    needs_line = bool(entry.call) and not truth.classes & (DEVICE | DISPATCH)
    return Mark(
        entry.name,
        entry.set,
        truth,
        answer,
        answer.verdict in truth.classes,
        _is_named(entry, answer, text) if needs_line else None,
        is_first,
        None if best is None else predicted is not None and _is_near(predicted, truth.intervals_percent[best]),
        rank,
        predicted,
    )


def _is_near(percent: float, interval: tuple[float, float]) -> bool:
    return interval[0] - NEAR_PERCENT <= percent <= interval[1] + NEAR_PERCENT


def _find(answer: Answer, kind: str) -> int | None:
    return next((place for place, (change, _) in enumerate(answer.suggestions) if _is_of(change, kind)), None)


def _is_of(change: str, kind: str) -> bool:
    return re.search(WORDS[kind], change, flags=re.IGNORECASE) is not None


def _is_named(entry: Entry, answer: Answer, text: str) -> bool:
    lines = text.splitlines()
    asked = {number for number, line in enumerate(lines, 1) if entry.call in line}
    return any(_range(place) & asked for place in answer.places)


def _range(place: str) -> set[int]:
    found = re.search(r":(\d+)(?:-(\d+))?$", place)
    return set() if found is None else set(range(int(found[1]), int(found[2] or found[1]) + 1))


def print_table(marks: list[Mark]) -> None:
    for one in marks:
        truth, answer = one.truth, one.answer
        sign = {True: "yes", False: "NO", None: "–"}
        print(
            f"\n{one.name} [{one.set}]  {truth.step_ms:.2f} ms a step (±{truth.spread_percent:.0f} %), "
            f"compute {truth.compute_ms:.2f}, input {truth.input_ms:.2f}\n"
            f"  true: {' or '.join(sorted(truth.classes))}; best: {truth.best or 'nothing'}  "
            + ", ".join(f"{name} {gain:+.0f} %" for name, gain in truth.gains_percent.items())
            + f"\n  said: {answer.verdict}/{answer.cause} ({answer.confidence}) {' '.join(answer.places)}: {answer.sentence}"
        )
        for change, gain in answer.suggestions[:3]:
            print(f"    - {change} [{'no gain given' if gain is None else f'{gain:.0f} %'}]")
        print(
            f"  class {sign[one.is_right]}, line {sign[one.is_named]}, best among two {sign[one.is_best_first]}, "
            f"gain near {sign[one.is_near]}"
        )


def print_shares(marks: list[Mark]) -> None:
    for name in dict.fromkeys(one.set for one in marks):
        own = [one for one in marks if one.set == name]
        if not own:
            continue
        bold = [one.name for one in own if not one.is_right and one.answer.confidence == "high"]
        print(
            f"{name}: {len(own)} scripts; class {_share([one.is_right for one in own])}, "
            f"line {_share([one.is_named for one in own])}, best among two {_share([one.is_best_first for one in own])}, "
            f"gain near {_share([one.is_near for one in own])}; wrong with high confidence: {', '.join(bold) or 'none'}"
        )


def _share(found: list[bool | None]) -> str:
    asked = [one for one in found if one is not None]
    return "–" if not asked else f"{sum(asked)} of {len(asked)} ({100 * sum(asked) / len(asked):.0f} %)"
