"""Where the time of the steps went, in parts that add up to it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class StepBreakdown:
    """Parts of all steps, ns. Each moment belongs to one part; device work comes before host activity."""

    input_wait_ns: int
    host_to_device_ns: int
    device_compute_ns: int
    device_copy_ns: int
    collective_ns: int
    compile_ns: int
    dispatch_ns: int
    host_compute_ns: int
    other_ns: int
