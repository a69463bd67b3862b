from collections.abc import Iterator
from dataclasses import is_dataclass
from enum import StrEnum
from typing import Any, get_args, get_type_hints

from pipeline_lab.analysis.diagnosis import storage
from pipeline_lab.analysis.results import Diagnosis


def reachable(kind: Any, seen: set[Any]) -> Iterator[type]:
    """Yield every dataclass and enum that a value of that type may hold."""
    for part in get_args(kind):
        yield from reachable(part, seen)
    if isinstance(kind, type) and kind not in seen and (is_dataclass(kind) or issubclass(kind, StrEnum)):
        seen.add(kind)
        yield kind
        for inner in get_type_hints(kind).values() if is_dataclass(kind) else ():
            yield from reachable(inner, seen)


def test_every_kind_of_result_that_a_diagnosis_may_hold_can_be_stored() -> None:
    known = {*storage._CLASSES.values(), *storage._ENUMS.values()}
    assert {kind.__name__ for kind in reachable(Diagnosis, set()) if kind not in known} == set()
