"""What is known of a trace as a whole, apart from what its events say; it adds up over several traces."""

from collections.abc import Iterable, Sequence
from itertools import chain, islice

from pipeline_lab.data_classes import dataclass
from pipeline_lab.trace.schema import MOST_MESSAGES, Salvage


@dataclass(frozen=True)
class TraceFacts:
    """Facts of one trace, or of several together.

    Attributes:
        hosts: Where they were recorded, sorted.
        size_bytes, events: Of all files.
        lost: What damaged files lost; the reason is that of the first one.
        damaged_files: How many those are.
        unseen_device: The job used an accelerator of whose work a trace holds nothing.
        has_device: There is work of an accelerator.
        is_emulated: An accelerator is the emulated one.
        is_of_jax: A job is written in JAX.
        errors, warnings: Of the profiler, different ones, a bounded number.
    """

    hosts: tuple[str, ...] = ()
    size_bytes: int = 0
    events: int = 0
    lost: Salvage | None = None
    damaged_files: int = 0
    unseen_device: bool = False
    has_device: bool = False
    is_emulated: bool = False
    is_of_jax: bool = False
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def salvaged(self) -> Salvage | None:
        """What damaged files lost, and how many more of them there are than the one that is told of."""
        if self.lost is None or self.damaged_files < 2:
            return self.lost
        more = f" {self.damaged_files - 1} more files are damaged too."
        return Salvage(self.lost.bytes_lost, self.lost.events_kept, self.lost.reason + more)


def add_facts(traces: Sequence[TraceFacts]) -> TraceFacts:
    """Add up the facts of traces; of none there is nothing."""
    lost = [trace.lost for trace in traces if trace.lost is not None]
    return TraceFacts(
        hosts=tuple(sorted({host for trace in traces for host in trace.hosts})),
        size_bytes=sum(trace.size_bytes for trace in traces),
        events=sum(trace.events for trace in traces),
        lost=Salvage(sum(one.bytes_lost for one in lost), sum(one.events_kept for one in lost), lost[0].reason)
        if lost
        else None,
        damaged_files=sum(trace.damaged_files for trace in traces),
        unseen_device=any(trace.unseen_device for trace in traces),
        has_device=any(trace.has_device for trace in traces),
        is_emulated=any(trace.is_emulated for trace in traces),
        is_of_jax=any(trace.is_of_jax for trace in traces),
        errors=_different(trace.errors for trace in traces),
        warnings=_different(trace.warnings for trace in traces),
    )


def _different(messages: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(islice(dict.fromkeys(chain.from_iterable(messages)), MOST_MESSAGES))
