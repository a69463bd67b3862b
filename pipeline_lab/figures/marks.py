"""What a mark on a chart stands for, kept as the mark's id, so that a page can lead there: a place in the run's timeline, or a
stage of its pipeline.
"""

from collections.abc import Iterable

_STAGE = "stage#"


def event_place(kind: str, start_ns: int) -> str:
    """Name one event; ``kind`` is ``gap``, ``wait`` or ``step``."""
    return f"{kind}@{start_ns}"


def event_places(kind: str, starts_ns: Iterable[int]) -> list[str]:
    """Name several events of a kind."""
    return [event_place(kind, int(start_ns)) for start_ns in starts_ns]


def stretch_place(start_ns: int, end_ns: int) -> str:
    """Name a stretch of time."""
    return f"{start_ns}-{end_ns}"


def stage_place(number: int) -> str:
    """Name a stage of the pipeline, the consumer being 0."""
    return f"{_STAGE}{number}"


def stage_at(place: str) -> int | None:
    """Return the number of the stage that a place names; None if it lies in the timeline."""
    return int(place.removeprefix(_STAGE)) if place.startswith(_STAGE) else None
