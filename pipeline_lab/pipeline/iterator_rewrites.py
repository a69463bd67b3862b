"""The rewrites about the iterators that are made for each epoch: one for all of them, or ends that wait for nobody."""

from collections.abc import Iterator

from pipeline_lab.pipeline.chain import OF_PYTHON, Chain, RewritePlace, is_random, is_seeded, said_at
from pipeline_lab.pipeline.changes import AUTOTUNER, Insert, OneIterator
from pipeline_lab.pipeline.recipe import LOOP, TRAINING, VALIDATION

_ADDED_BY_FIT = frozenset({"map", "prefetch"})
"""Calls by which ``fit`` puts weights to what it is given, one for one."""
ONE_ITERATOR = {
    TRAINING: "Let one iterator serve all epochs: give fit the dataset repeated, and the steps of an epoch.",
    LOOP: "Let one iterator serve all epochs: create it once, of dataset.repeat(), before the loop over epochs.",
}
"""What is said of one iterator, by who goes through the dataset."""


def find_one_iterator(chain: Chain) -> Iterator[RewritePlace]:
    if chain.use.role in ONE_ITERATOR and chain.use.iterators > 1 and not why_not_one_iterator(chain):
        yield place_for_all_epochs(chain)


def find_autotuner_off(chain: Chain) -> Iterator[RewritePlace]:
    """Do without the thread that the end of an iterator may have to wait for, where there are several."""
    for last in chain.ends[-1:] if chain.use.iterators > 1 else ():
        yield RewritePlace(
            last,
            (Insert(last.number, "with_options", {AUTOTUNER: False}),),
            f"Turn tf.data's autotuner off behind {said_at(last)}: the end of an iterator often waits for its thread.",
            (
                "Calls and buffers set to AUTOTUNE keep the size that they begin with: as many calls as cores, up to 16.",
                "Without its model tf.data tells Pipeline Lab less about buffers, and in fit nothing about waits.",
            ),
        )


def place_for_all_epochs(chain: Chain) -> RewritePlace:
    """Repeat the dataset of a use, so that its iterator need not end with an epoch."""
    of_loop, read = chain.use.role == LOOP, chain.upstream(chain.calls[-1])
    is_pure = not any(call.python or not OF_PYTHON.isdisjoint(call.stateful) for call in read)
    return RewritePlace(
        None,
        (OneIterator(is_pure and not chain.use.reads_state, of_loop),),
        ONE_ITERATOR[chain.use.role],
        (
            "The first batches of an epoch are made while the last ones of the epoch before are trained on.",
            *(("Files that the loop writes between epochs may be read before.",) if of_loop else ()),
        ),
    )


def why_not_one_iterator(chain: Chain) -> str:
    """Return why one iterator cannot serve all epochs of a dataset that is read again and again; empty where it can."""
    kept = {each for call in chain.upstream(chain.calls[-1]) for each in call.stateful} - OF_PYTHON
    reasons = {
        "The call that reads it reads another dataset as well.": any(use.role != VALIDATION for use in chain.beside),
        "A library makes its last stage.": not _ends_with_the_users(chain),
        "What it shuffles, draws or keeps is read elsewhere, too, or Python runs in both.": chain.is_shared(
            chain.elsewhere if chain.use.role == LOOP else chain.beside
        ),
        "A seed is set, with which each iterator draws the same; one for all epochs would draw on.": is_seeded(kept),
        "Its functions keep a state.": not all(map(is_random, kept)),
        "tf.data does not know how many batches it has, so nobody can say how many steps an epoch is.": chain.use.length
        is None,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _ends_with_the_users(chain: Chain) -> bool:
    """Say whether a dataset of the user's is read as it is, or as ``fit`` weights its classes."""
    if not chain.ends:
        return False
    added = chain.calls[chain.calls.index(chain.ends[-1]) + 1 :]
    return all(call.method in _ADDED_BY_FIT and call.place == chain.use.place for call in added)
