"""Memory by allocator, from the allocation events of a trace."""

from dataclasses import replace

import pytest

from pipeline_lab.analysis.machine import allocators
from pipeline_lab.analysis.machine.allocators import Allocator
from pipeline_lab.errors import TraceIncompleteError
from tests.support.traces import Event, host, line, trace


def allocation(at_us: float, allocator: str, used: int, peak: int, *, freed: bool = False) -> Event:
    name = "MemoryDeallocation" if freed else "MemoryAllocation"
    stats = {"allocator_name": allocator, "bytes_allocated": used, "peak_bytes_in_use": peak}
    return (name, at_us, 0, stats)


def test_each_allocator_has_its_peak_and_its_use_in_order_of_time():
    found = allocators.read_allocators(
        trace(
            host(
                line("python", allocation(30, "cpu", 5, 9), ("train", 0, 100)),
                line("pool", allocation(10, "GPU_0_bfc", 40, 70), allocation(20, "GPU_0_bfc", 10, 70, freed=True)),
            )
        )
    )
    assert found.allocators == (Allocator("host", "GPU_0_bfc", 70), Allocator("host", "cpu", 9))
    rows = [(row["start_ns"], row["allocator"], row["used_bytes"]) for row in found.table.to_pylist()]
    assert rows == [(10_000, "GPU_0_bfc", 40), (20_000, "GPU_0_bfc", 10), (30_000, "cpu", 5)]


def test_windows_and_hosts_merge_by_allocator():
    def part(peak: int, host_name: str) -> allocators.Allocators:
        return allocators.read_allocators(
            trace(host(line("python", allocation(1, "cpu", 1, peak))), host_name=host_name)
        )

    merged = allocators.merge_allocators([part(3, "a"), part(7, "a"), part(5, "b")])
    assert [(found.host, found.peak_bytes) for found in merged.allocators] == [("a", 7), ("b", 5)]
    assert merged.table.num_rows == 3


def test_a_thread_with_very_many_events_is_thinned_but_keeps_its_last_peak():
    events = [allocation(number, "cpu", number, number) for number in range(3 * allocators.MAX_EVENTS)]
    found = allocators.read_allocators(trace(host(line("python", *events))))
    assert found.table.num_rows == allocators.MAX_EVENTS
    assert found.allocators[0].peak_bytes == 3 * allocators.MAX_EVENTS - 1


def test_a_damaged_trace_that_has_lost_all_threads_says_so():
    lost = replace(host(line("python", allocation(1, "cpu", 1, 1))), lines=())
    with pytest.raises(TraceIncompleteError, match="allocation events"):
        allocators.read_allocators(trace(lost))


def test_a_trace_without_such_events_says_so():
    with pytest.raises(TraceIncompleteError, match="allocation events"):
        allocators.read_allocators(trace(host(line("python", ("train", 0, 100)))))
