from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import pytest

from pipeline_lab.analysis.diagnosis.storage import find_kinds, read_result, write_result
from pipeline_lab.analysis.results import Diagnosis, Source
from pipeline_lab.analysis.verdict.verdict import Verdict


class Color(StrEnum):
    RED = "red"


@dataclass(frozen=True)
class Inner:
    color: Color


@dataclass(frozen=True)
class Outer:
    inner: tuple[Inner, ...] | None
    counts: dict[Color, int]


def test_what_a_result_may_hold_is_found_by_the_types_of_its_fields() -> None:
    assert find_kinds(Outer) == {"Outer": Outer, "Inner": Inner, "Color": Color}


def test_every_kind_of_result_that_a_diagnosis_may_hold_can_be_stored() -> None:
    assert {Source, Verdict} <= set(find_kinds(Diagnosis).values())


def test_what_was_written_comes_back(tmp_path: Path) -> None:
    value = Outer((Inner(Color.RED),), {Color.RED: 3})
    assert read_result(write_result(value, tmp_path), tmp_path, Outer) == value


def test_a_result_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not a Outer"):
        read_result(write_result(Inner(Color.RED), tmp_path), tmp_path, Outer)


def test_two_classes_of_one_name_cannot_be_told_apart() -> None:
    other = dataclass(frozen=True)(type("Inner", (), {"__annotations__": {"width": int}}))
    both = dataclass(frozen=True)(type("Both", (), {"__annotations__": {"one": Inner, "two": other}}))
    with pytest.raises(TypeError, match="two classes Inner"):
        find_kinds(both)
