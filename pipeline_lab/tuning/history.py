"""What a search did and why, step by step, and where every configuration stands on one scale.

``history.jsonl`` is for people, the app and the report. A resumed search goes through the same steps again (its trials are
answered from the ledger), so it writes the file again.
"""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from pipeline_lab.data_classes import dataclass
from pipeline_lab.tuning.halving import Fate
from pipeline_lab.tuning.space import START


@dataclass(frozen=True)
class Profiled:
    """A configuration was run alone to find what could be better.

    Attributes:
        configuration: Its name.
        run: The run; empty if it could not be measured.
        step_ms: Time of its step, as documents say it; None where the model has no answer.
        ceiling: How many times faster it could become through its input alone (end-to-end over compute-only step time).
        binds: What limits its step time.
        sentence: In words.
    """

    kind: ClassVar[str] = "profiled"
    configuration: str
    run: str
    step_ms: float | None
    ceiling: float | None
    binds: str
    sentence: str


@dataclass(frozen=True)
class Pick:
    """A configuration that is to race.

    Attributes:
        configuration: Its name.
        options: Its document.
        step_ms: What the model predicts, None without a prediction.
        memory_bytes, threads: What it costs, None likewise.
    """

    configuration: str
    options: dict[str, Any]
    step_ms: float | None = None
    memory_bytes: int | None = None
    threads: int | None = None


@dataclass(frozen=True)
class Proposed:
    """Configurations were chosen for a race.

    Attributes:
        round: Number of the round, from 1.
        looked_at: Configurations that were considered.
        refused: How many were left out, by the reason.
        picks: The chosen ones, the most promising first.
        sentence: In words.
    """

    kind: ClassVar[str] = "proposed"
    round: int
    looked_at: int
    refused: dict[str, int]
    picks: tuple[Pick, ...]
    sentence: str


@dataclass(frozen=True)
class RacedArm:
    """An arm after a race.

    Attributes:
        configuration: Its name.
        fate: What became of it; see :class:`pipeline_lab.tuning.halving.Fate`.
        ratio, low, high: Of its time to the leader's; None if it did not run, or nothing is excluded.
        predicted: The same ratio as predicted; None without a prediction.
    """

    configuration: str
    fate: str
    ratio: float | None
    low: float | None
    high: float | None
    predicted: float | None


@dataclass(frozen=True)
class Raced:
    """Arms raced.

    Attributes:
        round: Of the proposal.
        races: The runs that hold the races; several where machines shared the candidates.
        leader: The configuration that ratios are relative to.
        pairs: At most.
        standings: The new leader first.
    """

    kind: ClassVar[str] = "raced"
    round: int
    races: tuple[str, ...]
    leader: str
    pairs: int
    standings: tuple[RacedArm, ...]

    @property
    def winner(self) -> str:
        return next(each.configuration for each in self.standings if each.fate == Fate.LEADS)


@dataclass(frozen=True)
class SearchEnded:
    """The search is over.

    Attributes:
        winner: Name of the configuration; ``start`` where nothing was better.
        ratio, low, high: Time of the challenger over the start's, from a race of the two; None if they did not race.
            An end of the interval is None as well while nothing is excluded.
        race: That race, or empty.
        predicted: The ratio as predicted before; None where it was not asked.
        configurations: How many were measured.
        spent_s: What the trials took of the budget; the mean of those that ran at the same time.
        sentence: Why it ended, in words.
        challenger: What led before the race against the start; the winner, unless the start stays.
    """

    kind: ClassVar[str] = "ended"
    winner: str
    ratio: float | None
    low: float | None
    high: float | None
    race: str
    predicted: float | None
    configurations: int
    spent_s: float
    sentence: str
    challenger: str = START

    @property
    def is_faster(self) -> bool:
        """Say whether the interval excludes that the challenger is as slow as the start."""
        return self.high is not None and self.high < 1


SearchStep: TypeAlias = Profiled | Proposed | Raced | SearchEnded
_KINDS: dict[str, type[SearchStep]] = {kind.kind: kind for kind in (Profiled, Proposed, Raced, SearchEnded)}
_PARTS: dict[str, type[Pick | RacedArm]] = {"picks": Pick, "standings": RacedArm}


def has_raced(steps: Sequence[SearchStep], configuration: str) -> bool:
    """Say whether a configuration raced another one; the model's first choice leads without a race."""
    return any(configuration in _met(step) for step in steps)


def _met(step: SearchStep) -> set[str]:
    """Return the configurations that ran in a race; one whose opponents all failed has raced nothing."""
    if isinstance(step, Raced):
        ran = {each.configuration for each in step.standings if each.ratio is not None}
        return ran if len(ran) > 1 else set()
    return {step.challenger} if isinstance(step, SearchEnded) and step.ratio is not None else set()


@dataclass
class History:
    """The steps of a search as they are made; each is on disk when it is taken."""

    path: Path
    steps: list[SearchStep] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.path.unlink(missing_ok=True)

    def add(self, step: SearchStep) -> None:
        self.steps.append(step)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"kind": step.kind, **asdict(step)}, ensure_ascii=False) + "\n")


def read_history(path: Path) -> tuple[SearchStep, ...]:
    """Return the steps so far; a torn last line is left out."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")[:-1]
    except FileNotFoundError:
        return ()
    return tuple(_read(lines))


def _read(lines: list[str]) -> Iterator[SearchStep]:
    for line in lines:
        try:
            document = json.loads(line)
            kind = _KINDS[document.pop("kind")]
            for name, part in _PARTS.items():
                if name in document:
                    document[name] = tuple(part(**_known(part, each)) for each in document[name])
            if "races" in document:
                document["races"] = tuple(document["races"])
            yield kind(**_known(kind, document))
        except (ValueError, KeyError, TypeError, AttributeError):
            continue


def _known(kind: type[Any], document: dict[str, Any]) -> dict[str, Any]:
    names = {each.name for each in fields(kind)}
    return {name: value for name, value in document.items() if name in names}


@dataclass(frozen=True)
class RankedConfiguration:
    """A configuration's time per step over that of the reference.

    Attributes:
        configuration: Its name.
        fate: What became of it in its last race.
        ratio, low, high: From its last race, through the leaders of the races before; None if it did not run.
        predicted: As predicted; None without a prediction.
    """

    configuration: str
    fate: Fate
    ratio: float | None
    low: float | None
    high: float | None
    predicted: float | None

    def scaled(self, measured: float, expected: float | None) -> "RankedConfiguration":
        """Return the same on a scale with another reference."""
        ratio, low, high = (None if each is None else each * measured for each in (self.ratio, self.low, self.high))
        predicted = None if self.predicted is None or expected is None else self.predicted * expected
        return replace(self, ratio=ratio, low=low, high=high, predicted=predicted)


@dataclass(frozen=True)
class Ranking:
    """All of them.

    Attributes:
        reference: The configuration whose time is 1: the start if one raced it, else the one that led first.
        rows: The one that leads, then the fastest first, those that did not run last.
    """

    reference: str
    rows: tuple[RankedConfiguration, ...]


def rank_configurations(steps: Sequence[SearchStep]) -> Ranking:
    """Return the place of every configuration that raced."""
    raced = [step for step in steps if isinstance(step, Raced)]
    reference = raced[0].leader if raced else START
    found = _chain(raced)
    ended = next((step for step in steps if isinstance(step, SearchEnded) and step.ratio is not None), None)
    if ended is not None:
        reference, found = START, _over_the_start(found, ended)
    rows = sorted(found.values(), key=lambda each: (each.fate is not Fate.LEADS, each.ratio or math.inf))
    return Ranking(reference, tuple(rows))


def _chain(raced: Sequence[Raced]) -> dict[str, RankedConfiguration]:
    """Return places over the time of the first leader."""
    found: dict[str, RankedConfiguration] = {}
    for step in raced:
        leader = found.get(step.leader)
        measured = 1.0 if leader is None or leader.ratio is None else leader.ratio
        expected = leader.predicted if leader else 1.0
        found |= {each.configuration: _place(each).scaled(measured, expected) for each in step.standings}
    return found


def _over_the_start(found: dict[str, RankedConfiguration], ended: SearchEnded) -> dict[str, RankedConfiguration]:
    """Return places over the start's time, through the one that raced it."""
    assert ended.ratio is not None
    met = RankedConfiguration(ended.challenger, Fate.LEADS, ended.ratio, ended.low, ended.high, ended.predicted)
    start = RankedConfiguration(START, Fate.BEHIND, 1.0, 1.0, 1.0, 1.0)
    if ended.winner == START:
        met, start = replace(met, fate=Fate.BEHIND), replace(start, fate=Fate.LEADS)
    known = found.get(ended.challenger)
    if known is None or not known.ratio:
        others = {}
    else:
        expected = ended.predicted / known.predicted if ended.predicted and known.predicted else None
        others = {name: each.scaled(ended.ratio / known.ratio, expected) for name, each in found.items()}
    return {**others, ended.challenger: met, START: start}


def _place(standing: RacedArm) -> RankedConfiguration:
    numbers = (standing.ratio, standing.low, standing.high, standing.predicted)
    return RankedConfiguration(standing.configuration, Fate(standing.fate), *numbers)
