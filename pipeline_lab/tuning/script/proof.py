"""The proof that a changed script gives its model the same examples: both are run up to the training, and read there."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from pipeline_lab.advice.script.cache_room import SIZE_UNKNOWN, find_no_room
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import RunFailedError
from pipeline_lab.pipeline.first_steps import StepsRequest, TrainedSteps
from pipeline_lab.pipeline.samples import (
    PASSES,
    REPEATS,
    Draws,
    Epochs,
    Proof,
    ProofOutcome,
    ReadingPlace,
    Sample,
    SampleRequest,
    compare_joined,
    compare_others,
    compare_samples,
    read_answer,
    repeats_what_was_new,
)
from pipeline_lab.runs.machine.limits import usable_memory_bytes
from pipeline_lab.tuning.script.sample_process import SampleProcess, Script

_ONCE = {
    Draws.IN_ORDER: "random numbers are drawn in the order of the examples",
    Draws.BY_ELEMENT: "each element has a random generator of its own in Python",
}
"""What lets a script and a changed one draw the same; in training, parallel calls draw as they come."""

LOGGED = "and Keras logs the same of them but for rounding."
NOT_LOGGED = "whose results, in a loop of its own, nothing compares."
GOES_ON = (
    "If it goes on from a checkpoint that the recording left, delete that, and begin with the recording: --run {run}."
)
"""What may have happened where a script trains no longer once it was recorded."""


@dataclass(frozen=True)
class HowFar:
    """How much is read for a proof.

    Attributes:
        elements: Of each pass at most.
        seconds: Time to read both passes, beyond which the pass ends.
        patience_s: Time that a script may take up to its training, and the reading.
    """

    elements: int = 200
    seconds: float = 20.0
    patience_s: float = 300.0


class Prover:
    """Compares a script with changed ones; a context manager that ends its process.

    Args:
        script: As it is.
        reading: Where it reads the dataset.
        recording: Id of the run that tells so.
        how_far: How much is read.
        watches: Places of calls that may change; what else is made there is read too.
    """

    def __init__(
        self,
        script: Script,
        reading: ReadingPlace,
        recording: str,
        how_far: HowFar | None = None,
        watches: Sequence[str] = (),
    ) -> None:
        self._watches = list(watches)
        self._script, self._reading, self._how_far = script, reading, how_far or HowFar()
        self._goes_on = GOES_ON.format(run=recording)
        self._process = SampleProcess(script)
        self._before: dict[tuple[Draws, bool], tuple[Sample, Path]] = {}
        self._trained: dict[Draws, TrainedSteps] = {}
        self._number = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.__exit__(kind, error, trace)

    def before(self, *, draws: Draws = Draws.AS_THEY_COME, is_seeded: bool = True) -> Sample:
        """Return what the script gives as it is.

        Args:
            draws: Where its random numbers come from.
            is_seeded: From seeds that are set before it begins.

        Raises:
            RunFailedError: It does not come to its training, or there is nothing left to train on.
        """
        key = draws, is_seeded
        if key not in self._before:
            found = self._sample({}, *key, watches=self._watches)
            if not any(found[0].passes):
                raise RunFailedError(
                    f"Where the script trains ({self._reading}), there is nothing to read. {self._goes_on}"
                )
            self._before[key] = found
        return self._before[key][0]

    def prove(
        self,
        texts: Mapping[str, str],
        *,
        draws: Draws = Draws.AS_THEY_COME,
        python_waits: bool = False,
        epochs: Epochs = Epochs.APART,
        keeps: bool = False,
        measures: bool = False,
        keeps_spec: bool = False,
        touches: Sequence[str] = (),
        others: Sequence[str] = (),
        line: int | None = None,
    ) -> Proof:
        """Compare the script with what it is with other texts in its files.

        Args:
            texts: Of the changed files.
            draws: Where random numbers come from; where that cannot be for the script, nothing is proved.
            python_waits: The change runs calls of Python at once: each waits a moment first, so that their order shows.
            epochs: How the changed dataset hands them on.
            keeps: The change keeps elements for later passes: those are also read without seeds, from which TensorFlow draws
                the same in each pass.
            measures: What it keeps is not known before: it must fit into memory, and neither draw nor count.
            keeps_spec: The elements have to be known to have the same types and shapes, whatever the last batch is.
            touches: Places of the calls that change; other datasets that are made there are compared as well.
            others: Places of the last calls of such datasets, as far as they are known.
            line: Where the dataset is read in these texts, if not at the line of before.

        Raises:
            RunFailedError: The script does not come to its training as it is.
        """
        try:
            before = self.before(draws=draws)
        except RunFailedError as error:
            if draws is Draws.AS_THEY_COME:
                raise
            return Proof(ProofOutcome.FAILED, f"It cannot be compared: {error}")
        touched = [each for each in before.others if not set(each.places).isdisjoint(touches)]
        numbers = [each.number for each in touched]
        try:
            after, values = self._sample(
                texts, draws, True, numbers, python_waits=python_waits, joined=epochs is not Epochs.APART, line=line
            )
            plain = Draws.AS_THEY_COME
            fresh = self._sample(texts, plain, False, numbers, line=line, measures=measures)[0] if keeps else None
        except RunFailedError as error:
            return Proof(ProofOutcome.FAILED, f"The changed script fails: {error}")
        reason = _why_not_kept(self.before(), fresh) if measures and fresh is not None else ""
        if reason := reason or _why_not_alike(before, after, keeps_spec=keeps_spec):
            return Proof(ProofOutcome.FAILED, reason)
        if draws is Draws.BY_ELEMENT and epochs is Epochs.JOINED:
            epochs = Epochs.REDRAWN  # passes draw by their numbers
        if epochs is Epochs.APART:
            proof = compare_samples(before, after, (self._before[draws, True][1], values))
        else:
            proof = compare_joined(before, after, epochs)
        if (differs := compare_others(replace(before, others=tuple(touched)), after, others)) is not None:
            return differs
        if fresh is not None and _repeats(self.before(is_seeded=False), fresh):
            return replace(proof, outcome=ProofOutcome.DIFFERENT, sentence=REPEATS)
        if draws in _ONCE and proof.outcome is ProofOutcome.EQUAL:
            sentence = f"{proof.sentence[:-1]}, once {_ONCE[draws]} (in training, parallel calls draw as they come)."
            return replace(proof, outcome=ProofOutcome.REDRAWN, sentence=sentence)
        return proof

    def prove_training(self, texts: Mapping[str, str], proof: Proof, *, draws: Draws, line: int | None) -> Proof:
        """Let the script and the changed one train a few steps, and compare what Keras logs of them.

        Args:
            texts: Of the changed files.
            proof: That the elements are what they should be.
            draws: Where random numbers come from.
            line: Where the dataset is read in these texts, if not at the line of before.

        Returns:
            The proof, with what was trained; or that the changed script does not train, or not as before.
        """
        try:
            if draws not in self._trained:
                self._trained[draws] = self._train({}, draws, None)
            before, after = self._trained[draws], self._train(texts, draws, line)
        except RunFailedError as error:
            return Proof(ProofOutcome.FAILED, f"The training fails: {error}")
        if not before.count:
            return Proof(ProofOutcome.FAILED, "The script as it is ends before a step of its training was seen.")
        if after.count < before.count:
            return Proof(ProofOutcome.FAILED, f"The changed script trains {after.count} of {before.count} steps.")
        if differs := before.find_difference(after):
            return Proof(ProofOutcome.DIFFERENT, differs)
        trained = f"The changed script trains {after.count} steps, {LOGGED if before.logs else NOT_LOGGED}"
        return replace(proof, sentence=f"{proof.sentence} {trained}")

    def _train(self, texts: Mapping[str, str], draws: Draws, line: int | None) -> TrainedSteps:
        start = self._script.target, list(self._script.arguments), self._script.is_module
        reading = self._reading if line is None else replace(self._reading, line=line)
        request = StepsRequest(*start, dict(texts), reading, self._how_far.patience_s, draws.value)
        answer = self._process.ask(asdict(request))
        if "error" in answer:
            raise RunFailedError(f"{answer['error'].rstrip('.')}.")
        return TrainedSteps(**answer)

    def is_repeatable(self, draws: Draws = Draws.AS_THEY_COME) -> bool:
        """Say whether the script gives the same twice, from the same seeds."""
        return self.prove({}, draws=draws).outcome in (ProofOutcome.EQUAL, ProofOutcome.REDRAWN)

    def _sample(
        self,
        texts: Mapping[str, str],
        draws: Draws,
        is_seeded: bool,
        numbers: Sequence[int] = (),
        watches: Sequence[str] = (),
        *,
        python_waits: bool = False,
        joined: bool = False,
        line: int | None = None,
        measures: bool = False,
    ) -> tuple[Sample, Path]:
        self._number += 1
        values = self._process.folder / f"{self._number}.npz"
        far = self._how_far
        request = SampleRequest(
            self._script.target,
            list(self._script.arguments),
            self._script.is_module,
            dict(texts),
            self._reading if line is None else replace(self._reading, line=line),
            far.elements * (PASSES if joined else 1),
            far.seconds,
            str(values),
            far.patience_s,
            draws.value,
            is_seeded,
            watches,
            numbers,
            python_waits,
            1 if joined else PASSES,
            measures or (draws is Draws.AS_THEY_COME and is_seeded and not texts),
        )
        answer = self._process.ask(asdict(request))
        if "error" in answer:
            hint = f" {self._goes_on}" if "is_not_reached" in answer and not texts else ""
            raise RunFailedError(f"{answer['error'].rstrip('.')}.{hint}")
        return read_answer(answer), values


def _why_not_alike(before: Sample, after: Sample, *, keeps_spec: bool) -> str:
    """Return what differs of what is known of elements before one is made; empty where nothing does, or may."""
    return f"Its elements would be {after.spec}, not {before.spec}." if keeps_spec and before.spec != after.spec else ""


def _why_not_kept(before: Sample, after: Sample) -> str:
    """Return what speaks against the caches of a changed script: their size, what they hold, what they hand on; empty where nothing does."""
    sizes = [stage.epoch_bytes for stage in after.stages if stage.method == "cache"]
    if not sizes or any(size is None for size in sizes):
        return SIZE_UNKNOWN
    full = find_no_room(sum(size or 0.0 for size in sizes), usable_memory_bytes())
    if full is not None:
        return full.reason
    if kept := next((stage for stage in after.stages if stage.is_kept and stage.stateful), None):
        return f"A cache would keep what {kept.method} draws or counts ({kept.stateful[0]})."
    specs = [sample.stages[0].spec for sample in (before, after) if sample.stages]
    return "" if len(set(specs)) == 1 else f"Its elements would be {specs[-1]}, not {specs[0]}." if specs else ""


def _repeats(before: Sample, after: Sample) -> bool:
    """Say whether a later pass over one of the datasets repeats the first one where it did not before; without seeds."""
    pairs = ((before, after), *_pairs(before, after))
    return any(repeats_what_was_new(*pair) for pair in pairs)


def _pairs(before: Sample, after: Sample) -> list[tuple[Sample, Sample]]:
    known = {each.number: each for each in before.others}
    return [(known[each.number], each) for each in after.others if each.number in known]
