import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_lab.units import format_bytes, format_count, format_duration, format_percent, keep_together


@pytest.mark.parametrize(
    ("duration_ns", "text"),
    [
        (0, "0 ns"),
        (1, "1 ns"),
        (1_500, "1.5 µs"),
        (20_300_000, "20.3 ms"),
        (999_000_000, "999 ms"),
        (1_234_000_000, "1.23 s"),
        (119 * 10**9, "119 s"),
        (120 * 10**9, "2 min 00 s"),
        (3_725 * 10**9, "1 h 02 min"),
        (-20_300_000, "-20.3 ms"),
    ],
)
def test_durations_have_three_digits_and_the_unit_that_suits(duration_ns: float, text: str) -> None:
    assert format_duration(duration_ns) == text


@pytest.mark.parametrize(
    ("size_bytes", "text"), [(0, "0 B"), (999, "999 B"), (1_000, "1 kB"), (4_520_000_000, "4.52 GB")]
)
def test_sizes_are_decimal(size_bytes: float, text: str) -> None:
    assert format_bytes(size_bytes) == text


@pytest.mark.parametrize(
    ("percent", "text"), [(0, "0 %"), (0.04, "< 0.1 %"), (-0.04, "> -0.1 %"), (12.34, "12.3 %"), (100, "100 %")]
)
def test_a_small_share_never_reads_as_nothing(percent: float, text: str) -> None:
    assert format_percent(percent) == text


def test_counts_have_separated_thousands() -> None:
    assert format_count(8_900_000) == "8,900,000"


@given(st.floats(1, 119e9))
def test_a_written_duration_is_within_a_digit_of_the_number(duration_ns: float) -> None:
    number, unit = format_duration(duration_ns).split(" ")
    scale = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}[unit]
    assert float(number) * scale == pytest.approx(duration_ns, rel=0.006)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("100 ms of each 266 ms step (37.6 %)", "100_ms of each 266_ms step (37.6_%)"),
        ("2 min 00 s of 1 h 02 min", "2_min_00_s of 1_h_02_min"),
        ("< 0.1 % of 4.52 GB/s", "<_0.1_% of 4.52_GB/s"),
        ("8 such steps, 3 seconds, 24 batches", "8 such steps, 3 seconds, 24 batches"),
    ],
)
def test_a_line_ends_in_no_quantity(text: str, kept: str) -> None:
    assert keep_together(text).replace("\u00a0", "_") == kept


def test_times_of_predictions_are_nanoseconds_until_they_are_shown() -> None:
    """Options of a workload are in ms, as people write them; what advice passes around is not."""
    for path in (Path(__file__).parents[1] / "pipeline_lab" / "advice").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            named = [node.name] if isinstance(node, ast.FunctionDef) else []
            named += [node.arg] if isinstance(node, ast.arg) else []
            named += [node.target.id] if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) else []
            assert not [name for name in named if name.endswith("_ms") and name != "to_ms"], path.name
