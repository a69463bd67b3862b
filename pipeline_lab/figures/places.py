"""Where a mark on a chart lies in the run's timeline, kept as the mark's id, so that a page can lead there."""

from collections.abc import Iterable


def event_place(kind: str, start_ns: int) -> str:
    """Name one event; ``kind`` is ``gap``, ``wait`` or ``step``."""
    return f"{kind}@{start_ns}"


def event_places(kind: str, starts_ns: Iterable[int]) -> list[str]:
    """Name several events of a kind."""
    return [event_place(kind, int(start_ns)) for start_ns in starts_ns]


def stretch_place(start_ns: int, end_ns: int) -> str:
    """Name a stretch of time."""
    return f"{start_ns}-{end_ns}"
