"""The result of a race: each candidate's ratio to the baseline, what it says in words, and what speaks against a faster arm.

``SCHEMA_VERSION`` history of :meth:`Race.to_json`: 1, the first one; 2, times per example where the batch
sizes differ.
"""

import math
from dataclasses import asdict
from typing import Any, assert_never

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline_lab.comparison.gate import Gate
from pipeline_lab.comparison.race_arms import ArmResult, count_samples, name_arms, read_arm, read_script_arm
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import StoreError, TraceIncompleteError, Unavailable
from pipeline_lab.hooks import Displayed
from pipeline_lab.options.race_options import AnyRace, ScriptRaceOptions, read_recorded_race
from pipeline_lab.runs.race_standings import ArmStanding, Rounds, compared_ns, find_standings, read_rounds
from pipeline_lab.runs.record import EMULATED_NOTE, RunKind
from pipeline_lab.runs.run_folder import RunFolder, read_record
from pipeline_lab.runs.run_tables import BLOCKS, read_table
from pipeline_lab.statistics.effective_sample import difference_interval, estimate_mean
from pipeline_lab.statistics.outcome import GateAnswer, Outcome
from pipeline_lab.statistics.paired import PairedRatio, log_ratios, paired_ratio, smallest_effect
from pipeline_lab.statistics.sequential import SequentialResult
from pipeline_lab.units import format_percent

WORSE_CONFIDENCE = 0.99
WORSE_SAMPLING = 0.05
"""A candidate whose total variation lies further above the baseline's than this samples its files worse."""
LEAST_CHANGE = 0.0005
"""A predicted change of less is none: it would read as 0 %."""
MIN_LOSSES = 20


def describe_answer(
    name: str, baseline: str, result: SequentialResult, outcome: Outcome, smallest_effect: float | None, per: str
) -> str:
    """Word the answer of one candidate for whom something is known; ``per`` is what times are compared for."""
    interval, change = _interval(result), _percent(result.ratio)
    takes = "an example takes it" if per == "example" else "its step takes"
    match outcome:
        case Outcome.FASTER:
            return f"{name} is faster than {baseline}: {takes} {change} less time ({interval})."
        case Outcome.SLOWER:
            return f"{name} is slower than {baseline}: {takes} {change} more time ({interval})."
        case Outcome.EQUIVALENT:
            return (
                f"{name} takes as long as {baseline}{_each(per)}: the difference is too small to matter ({interval})."
            )
        case Outcome.UNDECIDED:
            found = "" if smallest_effect is None else f"; a difference of {_percent(smallest_effect)} would have shown"
            return f"{name} and {baseline} cannot be distinguished{_each(per)} ({interval}){found}."
        case _:
            assert_never(outcome)


def describe_too_few(name: str, baseline: str, rounds: Rounds, kept: int) -> str:
    """Say why nothing is known about a candidate, and what to do.

    Args:
        name, baseline: Of the arms.
        rounds: The complete rounds.
        kept: How many of them count.
    """
    total = len(rounds.step_ns)
    if kept == total:
        return f"Too few rounds to say anything about {name} and {baseline}; let the race go on for longer."
    counted = f"Nothing can be said about {name} and {baseline}: {kept} of {total} rounds count"
    if rounds.throttled > total - kept - rounds.throttled:
        return f"{counted}, for the device slowed itself down because of heat or power; cool it, then race again."
    return (
        f"{counted}, for other programs disturbed the rest; race again on a quieter machine, "
        "or raise max_extra_load_percent."
    )


def describe_prediction(ratio: float | None) -> str:
    """Say what was predicted of a candidate before the race; nothing where nobody did."""
    if ratio is None:
        return ""
    if abs(1.0 - ratio) < LEAST_CHANGE:
        return "Predicted: no change."
    return f"Predicted: {_percent(ratio)} {'less' if ratio < 1 else 'more'} time."


def find_warnings(baseline: ArmResult, candidate: ArmResult) -> tuple[str, ...]:
    """Say what got worse in a candidate while its time was looked at."""
    looks = (_worse_loss, _worse_sampling, _worse_views)
    return tuple(sentence for look in looks if (sentence := look(baseline, candidate)) is not None)


def answer_race_gate(limit_percent: float, baseline: str, answers: dict[str, GateAnswer], per: str) -> Gate:
    """Answer for continuous integration.

    Args:
        limit_percent: How much longer than the baseline a candidate may take.
        baseline: Name of the baseline.
        answers: Of each candidate, by its name.
        per: What the times are compared for, ``step`` or ``example``.
    """
    order = (GateAnswer.PASSED, GateAnswer.UNDECIDED, GateAnswer.CROSSED)
    answer = max(answers.values(), key=order.index)
    at_fault = ", ".join(name for name, each in answers.items() if each is answer)
    limit = f"{limit_percent:g} %{_each(per)}"
    sentences = {
        GateAnswer.PASSED: f"No candidate is slower than {baseline} by more than {limit}.",
        GateAnswer.CROSSED: f"Slower than {baseline} by more than {limit}: {at_fault}.",
        GateAnswer.UNDECIDED: f"Whether {at_fault} is slower by more than {limit} cannot be determined; race more pairs.",
    }
    return Gate(limit_percent, answer, sentences[answer])


def _interval(result: SequentialResult) -> str:
    if result.low <= 0 and not np.isfinite(result.high):
        return f"ratio {result.ratio:.3f}; too few pairs for an interval"
    high = f"{result.high:.3f}" if np.isfinite(result.high) else "∞"
    return f"ratio {result.ratio:.3f}, {100 * (1 - result.alpha):.3g} % interval {result.low:.3f} to {high}"


def _each(per: str) -> str:
    return " per example" if per == "example" else ""


def _percent(ratio: float) -> str:
    return format_percent(100 * abs(ratio - 1))


def _worse_loss(baseline: ArmResult, candidate: ArmResult) -> str | None:
    if isinstance(baseline.loss, Unavailable):
        return None
    if not np.isfinite(candidate.losses).all():
        return f"{candidate.name} learns worse: its loss became non-finite, {baseline.name}'s is {baseline.loss:.3g}."
    if isinstance(candidate.loss, Unavailable):
        return None
    if min(baseline.losses.size, candidate.losses.size) < MIN_LOSSES:
        return None
    first, second = estimate_mean(baseline.losses), estimate_mean(candidate.losses)
    low, _ = difference_interval(first, second, WORSE_CONFIDENCE)
    if not low > 0:
        return None
    return (
        f"{candidate.name} learns worse: after as many steps its loss is {candidate.loss:.3g}, "
        f"{baseline.name}'s {baseline.loss:.3g}."
    )


def _worse_sampling(baseline: ArmResult, candidate: ArmResult) -> str | None:
    first, second = baseline.sampling, candidate.sampling
    if isinstance(first, Unavailable) or isinstance(second, Unavailable):
        return None
    if first.total_variation is None or second.total_variation is None:
        return None
    if second.total_variation - first.total_variation <= WORSE_SAMPLING:
        return None
    return (
        f"{candidate.name} samples its files less evenly: {format_percent(100 * second.total_variation)} of its examples "
        f"would have to come from other files, {format_percent(100 * first.total_variation)} of {baseline.name}'s."
    )


def _worse_views(baseline: ArmResult, candidate: ArmResult) -> str | None:
    if isinstance(baseline.sampling, Unavailable) or isinstance(candidate.sampling, Unavailable):
        return None
    first, second = baseline.sampling.same_source, candidate.sampling.same_source
    if second is None or not second.is_weak or (first is not None and first.is_weak):
        return None
    before = "" if first is None else f", {first.per_batch:.3g} of {baseline.name}'s"
    return (
        f"{candidate.name} puts views of one image together: {second.per_batch:.3g} of the {second.batch_size} examples of a "
        f"batch share their image with another one{before}."
    )


SCHEMA_VERSION = 2


@dataclass(frozen=True)
class Candidate:
    """One candidate against the baseline.

    Attributes:
        name: Of the arm.
        standing: Ratio with its interval, word and gate.
        paired: The same pairs as if their number had been fixed beforehand: geometric mean, paired t interval,
            sign-flip test; None with fewer than two pairs. Too sure of itself after early stopping.
        smallest_effect: The ratio that would be found with a probability of 80 %, None while nothing is excluded.
        sentence: The answer for people.
        warnings: What got worse beside the time, as sentences.
        predicted_ratio: What was predicted before the race; None where nobody did.
    """

    name: str
    standing: ArmStanding
    paired: PairedRatio | None
    smallest_effect: float | None
    sentence: str
    warnings: tuple[str, ...]
    predicted_ratio: float | None = None

    def to_json(self) -> dict[str, Any]:
        result, gate = self.standing.result, self.standing.gate
        return {
            "name": self.name,
            "outcome": self.standing.outcome.value,
            "is_over": self.standing.is_over,
            **_ratio_document(result),
            "predicted_ratio": self.predicted_ratio,
            "smallest_effect": self.smallest_effect,
            "paired": None if self.paired is None else asdict(self.paired),
            "gate": None if gate is None else gate.value,
            "sentence": self.sentence,
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True, eq=False, repr=False)
class Race(Displayed):
    """A race, finished or still going.

    Attributes:
        id, name: Of the run that holds it.
        options: What was raced.
        rounds: Complete rounds.
        kept_rounds: Those that were not disturbed.
        other_load_percent: What other programs used of the cores, mean over all blocks; None if not measured.
        arms: Baseline first; over the rounds that count, or over all where none does.
        candidates: One per arm after the baseline.
        environment: What it ran on.
        created_s: When it was launched, seconds since the epoch.
        notes: The user's words.
    """

    id: str
    name: str
    options: AnyRace
    rounds: int
    kept_rounds: int
    other_load_percent: float | None
    arms: tuple[ArmResult, ...]
    candidates: tuple[Candidate, ...]
    environment: dict[str, Any]
    created_s: float
    notes: str

    @property
    def gate(self) -> Gate | None:
        """The answer for continuous integration; None where no limit was set."""
        limit = self.options.fail_if_slower_percent
        answers = {each.name: each.standing.gate for each in self.candidates if each.standing.gate is not None}
        return None if limit is None else answer_race_gate(limit, self.arms[0].name, answers, self.options.per)

    def to_json(self) -> dict[str, Any]:
        """Return the race as one JSON object; times in ms, shares in percent."""
        gate = self.gate
        return {
            "schema_version": SCHEMA_VERSION,
            "id": self.id,
            "name": self.name,
            "per": self.options.per,
            "rounds": self.rounds,
            "kept_rounds": self.kept_rounds,
            "other_load_percent": self.other_load_percent,
            "arms": [arm.to_json() for arm in self.arms],
            "candidates": [candidate.to_json() for candidate in self.candidates],
            **({} if gate is None else {"gate": gate.to_json()}),
        }


def read_race(folder: RunFolder) -> Race:
    """Read a race from its folder; one that still goes on reads as far as it has come.

    Raises:
        StoreError: The run is no race.
        TraceIncompleteError: It has no complete round.
    """
    record = read_record(folder)
    if record.kind is not RunKind.RACE:
        raise StoreError(f"Run {folder.id} is not a race; `pipeline-lab race` makes one.")
    options = read_recorded_race(record.options or {})
    blocks = read_table(folder.blocks, BLOCKS)
    rounds = read_rounds(blocks, options.arm_count)
    kept = rounds.kept(options.max_extra_load_percent)
    if not kept.size:
        raise TraceIncompleteError(f"Race {folder.id} ended before its first round was complete; run it again.")
    counted = np.flatnonzero(kept)[: options.pairs]
    shown = counted if counted.size else np.arange(kept.size)
    blocks = blocks.filter(np.isin(blocks["round"].to_numpy(), shown))
    arms = _read_arms(folder, options, blocks)
    return Race(
        id=folder.id,
        name=record.name,
        options=options,
        rounds=len(rounds.step_ns),
        kept_rounds=int(kept.sum()),
        other_load_percent=_mean_load(rounds),
        arms=arms,
        candidates=tuple(
            _candidate(standing, arms, rounds, counted, options) for standing in find_standings(rounds, options)
        ),
        environment=record.environment,
        created_s=record.status.created_s,
        notes=record.notes,
    )


def _read_arms(folder: RunFolder, options: AnyRace, blocks: pa.Table) -> tuple[ArmResult, ...]:
    parts = [_blocks_of(blocks, number) for number in range(options.arm_count)]
    if isinstance(options, ScriptRaceOptions):
        return tuple(map(read_script_arm, name_arms(options), parts))
    noted = [count_samples(folder.arm(number)) for number in range(options.arm_count)]
    samples = min(filter(None, noted), default=0)
    return tuple(
        read_arm(folder.arm(number), name, options.arms[number], parts[number], samples)
        for number, name in enumerate(name_arms(options))
    )


def _candidate(
    standing: ArmStanding,
    arms: tuple[ArmResult, ...],
    rounds: Rounds,
    counted: NDArray[np.int64],
    options: AnyRace,
) -> Candidate:
    baseline, arm, result = arms[0], arms[standing.arm], standing.result
    smallest = _smallest_effect(result)
    predicted = options.predicted_ratio(standing.arm)
    emulated = EMULATED_NOTE if options.is_emulated else None
    times_ns = compared_ns(rounds.step_ns[counted], options)
    if result is None:
        sentence = describe_too_few(arm.name, baseline.name, rounds, counted.size)
    else:
        sentence = describe_answer(arm.name, baseline.name, result, standing.outcome, smallest, options.per)
    return Candidate(
        name=arm.name,
        standing=standing,
        paired=paired_ratio(log_ratios(times_ns[:, 0], times_ns[:, standing.arm])) if len(times_ns) > 1 else None,
        smallest_effect=smallest,
        sentence=" ".join(filter(None, (sentence, describe_prediction(predicted), emulated))),
        predicted_ratio=predicted,
        warnings=find_warnings(baseline, arm),
    )


def _smallest_effect(result: SequentialResult | None) -> float | None:
    if result is None or result.low == 0 or math.isinf(result.high):
        return None
    return smallest_effect(math.log(result.high / result.low) / 2, result.pairs, 1 - result.alpha)


def _ratio_document(result: SequentialResult | None) -> dict[str, Any]:
    """Return ratio and interval; null where nothing is excluded, for JSON knows no infinity."""
    if result is None:
        return dict.fromkeys(("pairs", "ratio", "low", "high", "p_value", "alpha"))
    document = asdict(result)
    return document | {"low": result.low or None, "high": None if math.isinf(result.high) else result.high}


def _blocks_of(blocks: pa.Table, arm: int) -> pa.Table:
    return blocks.filter(blocks["arm"].to_numpy() == arm)


def _mean_load(rounds: Rounds) -> float | None:
    known = rounds.load_percent[np.isfinite(rounds.load_percent)]
    return float(known.mean()) if known.size else None
