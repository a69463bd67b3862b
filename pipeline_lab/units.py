"""Write quantities for people; the only place where numbers become text.

Inside the package times are int64 nanoseconds and sizes are bytes.
"""

import re

NS_PER_US = 1_000
NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000
BYTES_PER_MB = 1_000_000

_TIME_STEPS = ((NS_PER_S, "s"), (NS_PER_MS, "ms"), (NS_PER_US, "µs"), (1, "ns"))
_SIZE_STEPS = ((10**9, "GB"), (10**6, "MB"), (10**3, "kB"), (1, "B"))
NO_BREAK_SPACE = "\u00a0"
_UNITS = "|".join([*(unit for _, unit in (*_TIME_STEPS, *_SIZE_STEPS)), "h", "min", "%"])
_INSIDE_QUANTITY = re.compile(
    rf"(?<=\d) (?=(?:{_UNITS})(?!\w))|(?<=\d h) (?=\d\d min)|(?<=\d min) (?=\d\d s)|(?<=[<>≈±]) (?=\d)"
)


def format_duration(duration_ns: float) -> str:
    """Write a duration with three significant digits and the unit that suits it, such as ``20.3 ms``."""
    if abs(duration_ns) >= 120 * NS_PER_S:
        minutes, seconds = divmod(round(duration_ns / NS_PER_S), 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {seconds:02d} s"
    return _format_scaled(duration_ns, _TIME_STEPS)


def duration_unit(longest_ns: float) -> tuple[int, str]:
    """Return the unit that suits the longest of some durations, with its length in ns: for an axis and the labels on it."""
    return next((each for each in _TIME_STEPS if abs(longest_ns) >= each[0]), _TIME_STEPS[-1])


def format_duration_in(duration_ns: float, unit: tuple[int, str]) -> str:
    """Write a duration in a given unit, so that it agrees with an axis."""
    scale, name = unit
    value = duration_ns / scale
    return f"< 0.01 {name}" if 0 < value < 0.005 else f"{_significant(value)} {name}"


def format_bytes(size_bytes: float) -> str:
    """Write a size in decimal units with three significant digits, such as ``4.52 GB``."""
    return _format_scaled(size_bytes, _SIZE_STEPS)


def format_percent(percent: float) -> str:
    """Write a share; shares that are small but not nothing never read as 0 %."""
    if percent == 0:
        return "0 %"
    if abs(percent) < 0.1:
        return "< 0.1 %" if percent > 0 else "> -0.1 %"
    return f"{_significant(percent)} %"


def format_count(count: float) -> str:
    """Write a whole number with thousands separated, such as ``8,900,000``."""
    return f"{round(count):,}"


def write_number(value: float) -> str:
    """Write a number with three significant digits, thousands separated."""
    return f"{value:,.0f}" if abs(value) >= 100 else _significant(value)


def keep_together(text: str) -> str:
    """Return text in which no line ends between a number and its unit: for what a browser lays out.

    What scripts may read, such as JSON, CSV and the terminal, keeps plain spaces.
    """
    return _INSIDE_QUANTITY.sub(NO_BREAK_SPACE, text)


def _format_scaled(value: float, steps: tuple[tuple[int, str], ...]) -> str:
    scale, unit = next(((scale, unit) for scale, unit in steps if abs(value) >= scale), steps[-1])
    return f"{_significant(value / scale)} {unit}"


def _significant(value: float) -> str:
    if value == 0:
        return "0"
    magnitude = abs(value)
    digits = 0 if magnitude >= 99.95 else 1 if magnitude >= 9.995 else 2
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
