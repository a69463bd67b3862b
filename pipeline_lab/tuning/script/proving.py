"""Which changes of a script can be proved: all together, else one after the other, each in the way that can show its faults."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from pipeline_lab.data_classes import dataclass
from pipeline_lab.pipeline.chain import OF_PYTHON, is_random
from pipeline_lab.pipeline.changes import (
    Change,
    Effect,
    IntoStep,
    SetArgument,
    SetTraining,
    Split,
    calls_of,
    made_at_one_place,
)
from pipeline_lab.pipeline.recipe import DatasetUse, Recipe
from pipeline_lab.pipeline.rewrites import find_earlier_caches
from pipeline_lab.pipeline.samples import Draws, Epochs, Proof, ProofOutcome
from pipeline_lab.pipeline.source_edits import Edited, edit_sources
from pipeline_lab.tuning.script.proof import HowFar, Prover
from pipeline_lab.tuning.script.worth_trying import stages_of

NOT_AT_ONCE = (
    "Beside functions that draw TensorFlow's random numbers in parallel, Python that runs at once cannot be compared."
)
LONE_PART = "Its elements are tuples of one part, which a map takes out of them, and the training step would not."
NO_TIME = "There was no time left to prove it; give the search a longer --budget, or ask for it with --change."
NOT_REPEATABLE = "The script gives other elements each time, even from the same seeds, so nothing can be compared."
_SAME = frozenset({ProofOutcome.EQUAL, ProofOutcome.ROUNDED, ProofOutcome.REDRAWN})
GOOD = {Effect.NOTHING: _SAME, Effect.ORDER: _SAME | {ProofOutcome.REORDERED}}


@dataclass(frozen=True)
class Effort:
    """What proofs may take.

    Attributes:
        how_far: How much of the script's data is read each time.
        stop: Called before each reading; raises to stop.
        is_spent: Says whether what is proved by then has to do, which it is given.
    """

    how_far: HowFar | None = None
    stop: Callable[[], None] = lambda: None
    is_spent: Callable[[Sequence[Change]], bool] = lambda _: False


UNLIMITED = Effort()


@dataclass(frozen=True)
class LeftAlone:
    """A change that is not proposed, and why."""

    change: Change
    reason: str


@dataclass(frozen=True)
class Proved:
    """What was proved.

    Attributes:
        changes: Those that can be made together; none where nothing could be proved.
        edited: The files with them; None without any.
        proof: That the script with all of them gives the same; None without any.
        left: The others.
        note: Why there are none; empty where there are some.
    """

    changes: tuple[Change, ...] = ()
    edited: Edited | None = None
    proof: Proof | None = None
    left: tuple[LeftAlone, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Proving:
    """Proofs of changes of one script.

    Attributes:
        recipe: Of the script.
        use: The reading of the dataset that is trained on.
        texts: The user's files by path.
        prover: Reads the script's data.
        effort: What they may take.
    """

    recipe: Recipe
    use: DatasetUse
    texts: Mapping[str, str]
    prover: Prover
    effort: Effort

    def prove(self, changes: Sequence[Change], repeatable: Draws) -> tuple[Edited, Proof]:
        """Prove changes together, however random numbers have to be drawn for it; of several failures the last one is reported.

        Args:
            changes: What is done.
            repeatable: So drawn, the script as it is gives the same twice.
        """
        edited = edit_sources(self.recipe, changes, self.texts, self.use)
        if edited.refused:
            return edited, Proof(ProofOutcome.FAILED, edited.refused[0].reason)
        proof, read_at = Proof(ProofOutcome.FAILED, NOT_AT_ONCE), self.use.place
        for draws in ways_to_draw(self.recipe, changes, repeatable):
            self.effort.stop()
            read = edited.for_proof
            proof = self.prover.prove(
                read.texts,
                draws=draws,
                python_waits=any(runs_python_at_once(self.recipe, each) for each in changes),
                epochs=epochs_after(self.recipe, self.use, changes),
                keeps=any(map(keeps, changes)),
                keeps_spec=any(each.fills_step for each in changes),
                measures=any(isinstance(edit, Split) for change in changes for edit in change.edits),
                touches=places_of(self.recipe, changes),
                others=others_of(self.recipe, self.use, changes),
                line=None if read_at is None else read.line_that_reads(read_at.file, read_at.line),
            )
            if is_good(proof, changes):
                return edited, self._train(edited, changes, draws, proof)
        return edited, proof

    def _train(self, edited: Edited, changes: Sequence[Change], draws: Draws, proof: Proof) -> Proof:
        """Also compare the first steps where the training step does what the pipeline did before."""
        calls = [edit.call for change in changes for edit in change.edits if isinstance(edit, IntoStep)]
        if not calls:
            return proof
        stages = stages_of(self.prover.before(), self.recipe, self.use)
        given = [stages[number] for call in calls for number in self.recipe.call(call).inputs if number in stages]
        if any(stage.spec.endswith(",)") for stage in given):
            return Proof(ProofOutcome.FAILED, LONE_PART)
        self.effort.stop()
        read_at = self.use.place
        line = None if read_at is None else edited.line_of(read_at.file, read_at.line)
        return self.prover.prove_training(edited.texts, proof, draws=draws, line=line)


def prove_changes(proving: Proving, changes: Sequence[Change], beaten: Sequence[tuple[Change, Change]] = ()) -> Proved:
    """Prove all changes together; where that fails, take one after the other and keep those that can be proved.

    Args:
        proving: Proves some of them.
        changes: That can be made together.
        beaten: Changes that exclude one of these, each with that one; tried where it is not kept.
    """
    if not changes:
        return Proved(note="Nothing is proposed: no change applies that fits.")
    repeatable = next(filter(proving.prover.is_repeatable, Draws), None)
    if repeatable is None:
        unproved = (LeftAlone(each, NOT_REPEATABLE) for each in (*changes, *(change for change, _ in beaten)))
        return Proved(left=tuple(unproved), note=f"Nothing is proposed. {NOT_REPEATABLE}")
    kept: list[Change] = []
    left: list[LeftAlone] = []
    best: tuple[Edited, Proof] | None = None
    for chosen in _attempts(proving.recipe, changes, beaten, kept):
        if all(each in kept for each in chosen):
            continue
        if kept and proving.effort.is_spent(kept):
            left += [LeftAlone(each, NO_TIME) for each in chosen if len(chosen) == 1]
            continue
        tried = proving.prove([*kept, *chosen], repeatable)
        if is_good(tried[1], [*kept, *chosen]):
            kept += chosen
            best = tried
        elif len(chosen) == 1:
            left.append(LeftAlone(chosen[0], tried[1].sentence))
    left += [LeftAlone(each, f"Instead this was kept: {rival.words}") for each, rival in beaten if rival in kept]
    if best is None:
        return Proved(left=tuple(left), note="Nothing is proposed: no change could be proved.")
    return Proved(tuple(kept), *best, tuple(left))


def _attempts(
    recipe: Recipe, changes: Sequence[Change], beaten: Sequence[tuple[Change, Change]], kept: Sequence[Change]
) -> Iterator[tuple[Change, ...]]:
    """Yield what to prove beside what is kept by then: all at once, which takes the least time, else in parts.

    What draws then comes after what does not, because it is compared with fixed draws. These also fix the order, so that what may
    change it is proved without them first. One iterator for all epochs comes last: beside it passes can't be told apart, so that what
    a cache keeps would not show.
    """
    joining = [each for each in changes if each.joins_epochs]
    drawing = [each for each in changes if draws(recipe, each) and each not in joining]
    steady = [each for each in changes if each not in (*joining, *drawing)]
    if steady and drawing and not any(each.effect is Effect.ORDER for each in steady):
        yield (*steady, *drawing)
    for group in (steady, drawing):
        if len(group) > 1:
            yield tuple(group)
        yield from zip(group)
    yield from ((each,) for each, rival in beaten if rival not in kept)
    yield from zip(joining)


def places_of(recipe: Recipe, changes: Iterable[Change]) -> list[str]:
    """Return where the calls stand that changes touch; a prefetch touches none, for it hands on whatever it gets."""
    numbers = {number for change in changes if change.rewrite != "prefetch" for number in calls_of(change.edits)}
    return sorted({str(recipe.call(number).place) for number in numbers})


def watched_places(recipe: Recipe, use: DatasetUse, changes: Sequence[Change]) -> list[str]:
    """Return where calls may change in the end: a cache that is too large stands earlier."""
    earlier = find_earlier_caches(recipe, use) if any(change.rewrite == "cache" for change in changes) else ()
    return places_of(recipe, [*changes, *earlier])


def others_of(recipe: Recipe, use: DatasetUse, changes: Iterable[Change]) -> list[str]:
    """Return the places of the last calls of other datasets that changes touch, because the same expressions made them."""
    mine = {call.number for call in recipe.upstream(use.call)}
    touched = {
        made.number
        for change in changes
        if change.rewrite != "prefetch"  # which hands on whatever it gets
        for number in calls_of(change.edits)
        for made in made_at_one_place(recipe, number)
    } - mine
    ends = {
        each.call: str(recipe.call(each.call).place)
        for each in recipe.uses
        if each.call not in mine and any(call.number in touched for call in recipe.upstream(each.call))
    }
    return list(dict.fromkeys(ends.values()))


def draws(recipe: Recipe, change: Change) -> bool:
    """Say whether a change lets random numbers go to other examples than before."""
    parallel = (
        each.call for each in change.edits if isinstance(each, SetArgument) and each.name == "num_parallel_calls"
    )
    return any(not OF_PYTHON.issuperset(recipe.call(number).stateful) for number in parallel)


def ways_to_draw(recipe: Recipe, changes: Sequence[Change], repeatable: Draws) -> list[Draws]:
    """Return how random numbers may be drawn for a proof, the best first; none where Python would not run at once then.

    TensorFlow hands numbers out in order by running what draws, and Python, one call at a time.

    Args:
        recipe: Of the script.
        changes: To prove.
        repeatable: So drawn, the script as it is gives the same twice.
    """
    drawn = Draws.IN_ORDER if any(draws(recipe, each) for each in changes) else repeatable
    if not any(runs_python_at_once(recipe, each) for each in changes):
        return [drawn]
    return [] if drawn is Draws.IN_ORDER else list(dict.fromkeys((drawn, Draws.BY_ELEMENT)))


def epochs_after(recipe: Recipe, use: DatasetUse, changes: Sequence[Change]) -> Epochs:
    """Say how a dataset hands its epochs on after changes."""
    if not any(each.joins_epochs for each in changes):
        return Epochs.APART
    later = itertools.takewhile(lambda call: call.method not in ("cache", "snapshot"), recipe.upstream(use.call))
    redraws = any(is_random(each) for call in later for each in call.stateful)
    return Epochs.REDRAWN if redraws else Epochs.JOINED


def runs_python_at_once(recipe: Recipe, change: Change) -> bool:
    """Say whether a change runs calls of Python at once, which come, and draw, in any order."""
    return any(
        (isinstance(edit, SetTraining) and edit.name == "workers")
        or (isinstance(edit, SetArgument) and edit.name == "num_parallel_calls" and bool(recipe.call(edit.call).python))
        for edit in change.edits
    )


def keeps(change: Change) -> bool:
    """Say whether a change keeps elements for later passes."""
    return "cache" in change.rewrite or change.rewrite == "snapshot"


def is_good(proof: Proof, changes: Iterable[Change]) -> bool:
    """Say whether a proof shows what its changes claim; one that is requested may alter the content, and is said to."""
    effects = {change.effect for change in changes}
    if Effect.CONTENT in effects:
        return proof.outcome is not ProofOutcome.FAILED
    return proof.outcome in GOOD[Effect.ORDER if Effect.ORDER in effects else Effect.NOTHING]
