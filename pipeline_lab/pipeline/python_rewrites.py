"""The rewrites around Python that runs in a pipeline: more of its calls at once, or fewer and larger ones."""

import math
from collections.abc import Iterator
from typing import Any

from pipeline_lab.pipeline.chain import OF_PYTHON, Chain, RewritePlace, said_at
from pipeline_lab.pipeline.changes import THREADS, InBatches, Insert, SetArgument, SetTraining
from pipeline_lab.pipeline.recipe import OF_KERAS

WORKERS = 4
WAITING_CALLS = 16
"""Calls of Python at once: well above the cores, for those that wait; threads that only wait cost little."""

AT_A_TIME = 64
"""Elements that a generator hands over at a time: what a call of Python costs beside its work is then 2 % of what it was."""
LARGE_BYTES = 65_536
"""An element from which copying it into a batch and out again takes about as long as a call of Python."""


def find_parallel_python(chain: Chain) -> Iterator[RewritePlace]:
    """Let several calls of Python wait at once; whether they wait, and share nothing, the proof and the race tell."""
    for call in chain.direct:
        others = [each for each in call.stateful if each not in OF_PYTHON]
        is_parallel = call.arguments.get("num_parallel_calls") is not None
        if call.method != "map" or not call.python or others or is_parallel or _pool(chain) is not None:
            continue
        yield RewritePlace(
            call,
            (
                SetArgument(call.number, "num_parallel_calls", WAITING_CALLS),
                Insert(chain.direct[-1].number, "with_options", {THREADS: WAITING_CALLS}),
            ),
            f"Let {WAITING_CALLS} calls of the Python in {said_at(call)} run at once, in as many threads.",
            (
                "Only calls that wait get faster. They run in several Python threads; their function must not change what they share.",
            ),
        )


def _pool(chain: Chain) -> int | None:
    return chain.use.pool_threads


def find_wider_pool(chain: Chain) -> Iterator[RewritePlace]:
    asked = [call.arguments.get("num_parallel_calls") for call in chain.direct if call.method in ("map", "batch")]
    most = max((each for each in asked if isinstance(each, int)), default=0)
    if most > 1 and _pool(chain) is None:
        yield place_pool(chain, most)


def place_pool(chain: Chain, threads: int) -> RewritePlace:
    """Give the pipeline of a use a private pool of that many threads."""
    last = (chain.direct or chain.calls)[-1]  # options hold for the whole pipeline, also what a library adds to it
    return RewritePlace(
        last,
        (Insert(last.number, "with_options", {THREADS: threads}),),
        f"Give the pool of {said_at(last)} {threads} threads.",
        (f"{threads} threads instead of one per core run its functions.",),
    )


CARRIED_OVER = "Where an epoch ends before its data do, workers carry batches over into the next one."


def find_workers(chain: Chain) -> Iterator[RewritePlace]:
    others = {use.call for use in chain.recipe.uses if (use.place, use.role) == (chain.use.place, chain.use.role)}
    for call in chain.calls if others <= {chain.use.call} else ():
        for part in call.python:
            if part.kind in OF_KERAS and not _has_workers(chain, part.kind):
                yield RewritePlace(
                    None,
                    (SetTraining("workers", WORKERS),),
                    f"Let {WORKERS} threads make the batches of {part.function}.",
                    (
                        "Several threads call that function at a time; it must not change what they share.",
                        *((CARRIED_OVER,) if chain.use.carried_over != "" else ()),
                    ),
                )


def _has_workers(chain: Chain, kind: str) -> bool:
    """Say whether workers make the batches already, by what Keras then does with the dataset that they feed."""
    of_keras = [call for call in chain.calls if not call.is_direct]
    if kind == "Sequence":  # Keras 2 keeps one batch ahead where it has none
        return not any(call.method == "prefetch" and call.arguments.get("buffer_size") == 1 for call in of_keras)
    return any(call.method == "with_options" for call in of_keras)


def find_generator_batches(chain: Chain) -> Iterator[RewritePlace]:
    """Let Python be called once for many small elements of a generator; they have to be of one shape, to stand in one array."""
    for call in chain.direct:
        sizes = _sizes(call.arguments.get("output_signature"))
        if call.method != "from_generator" or not sizes or any(size is None for size in sizes):
            continue
        if sum(size or 0 for size in sizes) >= LARGE_BYTES:
            continue
        yield RewritePlace(
            call,
            (InBatches(call.number, AT_A_TIME),),
            f"Let {said_at(call)} hand over {AT_A_TIME} elements at a time, which are split up again.",
            (
                f"The generator runs up to {AT_A_TIME} elements ahead; it must not change what others read, nor wait for them.",
            ),
        )


def _sizes(signature: Any) -> list[int | None]:
    """Return bytes of each part of a generator's elements, as the recipe describes it; None for one of no fixed shape.

    A text counts as nothing. Parts have to be alone, or side by side in a tuple or a dictionary.
    """
    if isinstance(signature, dict) and "array" not in signature:
        parts = list(signature.values())
    else:
        parts = signature if isinstance(signature, list) else [signature]
    return [_size(part) for part in parts]


def _size(part: Any) -> int | None:
    shape = part.get("array") if isinstance(part, dict) else None
    if shape is None or None in shape:
        return None
    bits = "".join(letter for letter in str(part.get("dtype")) if letter.isdigit())
    return math.prod(shape) * int(bits or 8) // 8 if part.get("dtype") != "string" else 0
