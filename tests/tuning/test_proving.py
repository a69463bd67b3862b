"""What is compared with what, in which order, and how far; the comparisons themselves are tested beside TensorFlow."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from pipeline_lab.pipeline.changes import Change, Effect, Insert, OneIterator, Risk, SetArgument, SetTraining
from pipeline_lab.pipeline.samples import Draws, Epochs, Proof, ProofOutcome
from pipeline_lab.tuning.script import proving
from pipeline_lab.tuning.script.proving import Effort, LeftAlone, Proved, Proving, prove_changes, ways_to_draw
from tests.support.scripts import DECODE
from tests.support.written_recipe import PATH, written_recipe

TEXT = "ds = tf.data.Dataset.range(8).map(f).batch(2).shuffle(4)\nmodel.compile()\nmodel.fit(ds, epochs=2)\n"
RECIPE = written_recipe(TEXT)
OF_PYTHON = {"python": (DECODE,), "stateful": ("PyFunc",)}


def change(rewrite: str, *edits: Any) -> Change:
    return Change(rewrite, None, edits, Effect.NOTHING, Risk.SOME, f"{rewrite.capitalize()}.")


CACHE, PREFETCH = change("cache", Insert(2, "cache")), change("prefetch", Insert(4, "prefetch"))
PARALLEL, WORKERS = (
    change("parallel-map", SetArgument(2, "num_parallel_calls", -1)),
    change("workers", SetTraining("workers", 4)),
)
ONE = change("one-iterator", OneIterator())


@dataclass
class Prover:
    """Notes what it is asked to compare.

    Attributes:
        refuses: Proves nothing whose text holds all of these.
        repeatable: So drawn, the script gives the same twice; None if it never does.
    """

    refuses: tuple[str, ...] = ()
    repeatable: Draws | None = Draws.AS_THEY_COME
    asked: list[dict[str, Any]] = field(default_factory=list)

    def is_repeatable(self, how: Draws) -> bool:
        return how is self.repeatable

    def prove(self, texts: dict[str, str], **how: Any) -> Proof:
        self.asked.append(how)
        is_refused = bool(self.refuses) and all(word in texts[PATH] for word in self.refuses)
        return Proof(ProofOutcome.DIFFERENT if is_refused else ProofOutcome.EQUAL, "Compared.")


def prove(
    prover: Prover, *changes: Change, beaten: Any = (), effort: Effort = proving.UNLIMITED, **known: Any
) -> Proved:
    recipe = written_recipe(TEXT, **known)
    assert recipe.trained is not None
    return prove_changes(Proving(recipe, recipe.trained, {PATH: TEXT}, prover, effort), changes, beaten)  # type: ignore[arg-type]


@pytest.mark.parametrize(("most", "proofs"), [(9, 3), (2, 2)])
def test_proofs_end_where_their_time_is_up_and_something_is_proved(most: int, proofs: int) -> None:
    prover = Prover(("prefetch", "cache"))
    found = prove(prover, PREFETCH, CACHE, effort=Effort(is_spent=lambda _: len(prover.asked) >= most))
    assert (found.changes, len(prover.asked)) == ((PREFETCH,), proofs)
    assert found.left == (LeftAlone(CACHE, proving.NO_TIME if most == 2 else "Compared."),)


@pytest.mark.parametrize("is_good", [True, False])
def test_what_draws_is_proved_beside_what_does_not_at_once_else_after_it(*, is_good: bool) -> None:
    prover = Prover(() if is_good else ("num_parallel_calls", "prefetch"))
    found = prove(prover, PARALLEL, PREFETCH, map={"stateful": ("RandomUniform",)})
    assert found.changes == ((PREFETCH, PARALLEL) if is_good else (PREFETCH,))
    ways = [how["draws"] for how in prover.asked]
    assert ways == [Draws.IN_ORDER, *([] if is_good else [Draws.AS_THEY_COME, Draws.IN_ORDER])]


def test_what_may_change_the_order_is_proved_before_draws_are_fixed_because_these_fix_the_order() -> None:
    prover = Prover()
    reorders = replace(PREFETCH, effect=Effect.ORDER)
    assert prove(prover, PARALLEL, reorders, map={"stateful": ("RandomUniform",)}).changes == (reorders, PARALLEL)
    assert [how["draws"] for how in prover.asked] == [Draws.AS_THEY_COME, Draws.IN_ORDER]


def test_one_iterator_is_proved_last_beside_what_was_proved_in_passes() -> None:
    prover = Prover()
    found = prove(prover, ONE, CACHE, PREFETCH)
    assert found.changes == (CACHE, PREFETCH, ONE)
    assert [how["epochs"] for how in prover.asked] == [Epochs.APART, Epochs.JOINED]
    assert [how["keeps"] for how in prover.asked] == [True, True]


@pytest.mark.parametrize("refuses", [(), ("num_parallel_calls",)])
def test_what_was_beaten_is_tried_where_the_other_one_is_not_kept(refuses: tuple[str, ...]) -> None:
    found = prove(Prover(refuses), PARALLEL, beaten=[(CACHE, PARALLEL)])
    assert found.changes == ((CACHE,) if refuses else (PARALLEL,))
    assert [each.change for each in found.left] == [PARALLEL if refuses else CACHE]


def test_python_that_runs_at_once_waits_in_each_of_its_proofs() -> None:
    prover = Prover(("num_parallel_calls",))
    assert prove(prover, PARALLEL, map=OF_PYTHON).changes == ()
    assert [(how["draws"], how["python_waits"]) for how in prover.asked] == [
        (Draws.AS_THEY_COME, True),
        (Draws.BY_ELEMENT, True),
    ]


@pytest.mark.parametrize(
    ("stateful", "repeatable", "ways"),
    [
        (("PyFunc",), Draws.AS_THEY_COME, [Draws.AS_THEY_COME, Draws.BY_ELEMENT]),
        (("PyFunc",), Draws.BY_ELEMENT, [Draws.BY_ELEMENT]),
        (("PyFunc",), Draws.IN_ORDER, []),  # TensorFlow then runs one call at a time
        (("PyFunc", "RandomUniform"), Draws.AS_THEY_COME, []),
    ],
)
def test_python_that_runs_at_once_is_never_proved_by_a_run_of_one_call_at_a_time(
    stateful: tuple[str, ...], repeatable: Draws, ways: list[Draws]
) -> None:
    recipe = written_recipe(TEXT, map={"python": (DECODE,), "stateful": stateful})
    assert ways_to_draw(recipe, [PARALLEL], repeatable) == ways
    assert ways_to_draw(RECIPE, [PARALLEL], Draws.IN_ORDER) == [Draws.IN_ORDER], "it runs no Python"
    found = prove(Prover(repeatable=repeatable), PARALLEL, map={"python": (DECODE,), "stateful": stateful})
    assert found.changes == ((PARALLEL,) if ways else ())
    assert ways or found.left == (LeftAlone(PARALLEL, proving.NOT_AT_ONCE),)


def test_workers_run_python_at_once() -> None:
    assert ways_to_draw(RECIPE, [WORKERS], Draws.AS_THEY_COME) == [Draws.AS_THEY_COME, Draws.BY_ELEMENT]


def test_a_script_that_never_repeats_itself_leaves_everything_alone() -> None:
    found = prove(Prover(repeatable=None), PARALLEL, beaten=[(CACHE, PARALLEL)])
    assert found.left == (LeftAlone(PARALLEL, proving.NOT_REPEATABLE), LeftAlone(CACHE, proving.NOT_REPEATABLE))
    assert replace(found, left=()) == Proved(note=f"Nothing is proposed. {proving.NOT_REPEATABLE}")
