"""What the readings are held against: the budgets of the trace reader, requested and measured."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

SPINE, WARM, COLD = "our scan to gaps, warm process", "our diagnosis, warm process", "our diagnosis, cold command"
"""The first stands for scan, steps, stalls and gaps; the others are the whole diagnosis."""
PEER = "xprof input_pipeline_analyzer"
COMPILED_PEER = "xprof-rs get_overview"
PAST_PROTOBUF_MB = 2147.5
"""No protobuf message is larger than 2 GiB."""


@dataclass(frozen=True)
class Reading:
    """One reader on one file.

    Attributes:
        reader, megabytes, events: Which reader on which file.
        read_s, cpu_s: The reading alone, wall and processor time.
        process_s: The whole process.
        peak_gb: Largest resident size; pages of mapped files count.
        anonymous_gb: Largest part of it that belongs to no file; None where the reader was not watched.
    """

    reader: str
    megabytes: float
    events: int
    read_s: float
    cpu_s: float
    process_s: float
    peak_gb: float
    anonymous_gb: float | None = None

    @property
    def row(self) -> str:
        speed = self.megabytes / self.read_s
        anonymous = "" if self.anonymous_gb is None else f"{self.anonymous_gb:.2f}"
        return (
            f"{self.reader:<30} {self.megabytes:>8.1f} {self.read_s:>8.2f} {self.cpu_s:>7.2f} {self.process_s:>9.2f} "
            f"{speed:>8.0f} {self.peak_gb:>7.2f} {anonymous:>7}"
        )


def statements(readings: Sequence[Reading], budget_mb: float) -> Iterator[str]:
    """Say of each budget what it asks and what was got; what was not measured is left out.

    Args:
        readings: All of them, one per reader and size.
        budget_mb: About the size of the file that the budgets are for.
    """
    found = {(one.reader, round(one.megabytes)): one for one in readings}
    sizes = sorted({size for _, size in found})
    size = min(sizes, key=lambda one: abs(one - budget_mb))
    spine, warm, cold, peer, rust = (found.get((reader, size)) for reader in (SPINE, WARM, COLD, PEER, COMPILED_PEER))
    if spine and peer:
        what = "scan, steps, stalls and gaps in a warm process against the conversion alone"
        yield _at_least(what, 20, peer.read_s / spine.read_s)
    if cold and peer:
        yield _at_least("cold command against the conversion alone", 15, peer.read_s / cold.read_s)
        yield _at_least("cold command against its whole process", 15, peer.process_s / cold.process_s)
    if warm and peer:
        yield _at_least("diagnosis in a warm process against the conversion alone", 45, peer.read_s / warm.read_s)
    if cold and rust:
        yield _at_least("cold command against xprof-rs, which is compiled", 4, rust.process_s / cold.process_s)
    if cold:
        yield _at_most(f"peak memory on {size} MB", "GB", 0.6, cold.peak_gb)
    large = found.get((WARM, sizes[-1]))
    if warm and large and sizes[-1] > PAST_PROTOBUF_MB:
        growth = (large.cpu_s / large.megabytes) / (warm.cpu_s / warm.megabytes)
        yield _at_most(f"processor time per MB on {sizes[-1]} MB over that on {size} MB", "times", 1.5, growth)
        if large.anonymous_gb is not None:
            yield _at_most(f"memory outside of files on {sizes[-1]} MB", "GB", 1.0, large.anonymous_gb)


def _at_least(what: str, asked: float, got: float) -> str:
    return f"{_mark(got >= asked)} {what}: asked at least {asked:g} times faster, got {got:.1f} times."


def _at_most(what: str, unit: str, asked: float, got: float) -> str:
    return f"{_mark(got <= asked)} {what}: asked at most {asked:g} {unit}, got {got:.2f} {unit}."


def _mark(is_met: bool) -> str:
    return "met   " if is_met else "MISSED"
