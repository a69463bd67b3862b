"""Calls of Keras' ``predict`` that are made both ways for a proof: what a script's process is asked for, and what it answers."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Self

from pipeline_lab.data_classes import dataclass
from pipeline_lab.pipeline.recipe import SourcePlace

PREDICT, ON_BATCH = "predict", "predict_on_batch"


@dataclass(frozen=True)
class PredictRequest:
    """What is to be done.

    Attributes:
        target, arguments, is_module: The script, as on the command line.
        calls: ``model.predict at train.py:40``; each of them is waited for.
        each: Calls of each to compare.
        seconds: From the first call on, beyond which nothing is waited for.
        patience_s: Time that the script may take in all.
        texts: Files to run in another form than they have on disk.
        counts: Calls of ``predict_on_batch`` to count, instead of comparing.
    """

    target: str
    arguments: Sequence[str]
    is_module: bool
    calls: Sequence[str]
    each: int
    seconds: float
    patience_s: float
    texts: Mapping[str, str] = field(default_factory=dict)
    counts: int = 0


@dataclass(frozen=True)
class ComparedCall:
    """The calls of one place.

    Attributes:
        words: ``model.predict at train.py:40``.
        place: Of the call.
        count: Compared.
        before_ms, after_ms: Medians of ``predict`` and ``predict_on_batch``, the first of each left out; None with too few.
        refusal: Why they cannot be replaced, a sentence; empty where they can.
    """

    words: str
    place: SourcePlace
    count: int
    before_ms: float | None
    after_ms: float | None
    refusal: str

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        return cls(**{**document, "place": SourcePlace(**document["place"])})
