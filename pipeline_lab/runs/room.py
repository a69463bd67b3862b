"""Whether this machine has room for what a job holds from its beginning to its end."""

from pipeline_lab.errors import OptionsError
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.runs.machine import usable_memory_bytes
from pipeline_lab.units import format_bytes
from pipeline_lab.workloads.features import FeaturesWorkload


def check_room(options: RunOptions) -> None:
    """Refuse a job that cannot fit into this machine's memory.

    Raises:
        OptionsError: Its table is larger.
    """
    workload = options.workload
    if not isinstance(workload, FeaturesWorkload):
        return
    held_bytes, memory_bytes = workload.held_bytes, usable_memory_bytes()
    if held_bytes > memory_bytes:
        raise OptionsError(
            f"The table of vectors takes {format_bytes(held_bytes)}, but this job may use {format_bytes(memory_bytes)} of "
            "memory here; choose the layout lookup, which leaves the table on disk, or fewer or shorter vectors."
        )
