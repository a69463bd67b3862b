"""What is measured beside the steps: memory of the process, processor and GPU over time."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from pipeline_lab.runs.tables import RESOURCES, TableWriter
from pipeline_lab.worker.clock import Clock
from pipeline_lab.worker.gpu import ReadsGpu
from pipeline_lab.worker.memory import ResidentMemory
from pipeline_lab.worker.processor_load import ProcessorLoad

SAMPLE_PERIOD_S = 0.5


@contextlib.contextmanager
def sample_resources(
    table: TableWriter, clock: Clock, on_sample: Callable[[int], bool], gpu: ReadsGpu
) -> Iterator[None]:
    """Fill the resources table from a thread while the block runs.

    Args:
        table: Open table of schema ``RESOURCES``.
        clock: The job's clock.
        on_sample: Told the resident memory (bytes) at each sample; says whether a window is being flushed.
        gpu: The one that the job trains on.
    """
    memory, processor = ResidentMemory(), ProcessorLoad()
    end = threading.Event()
    errors: list[OSError] = []

    def sample() -> None:
        try:
            while not end.wait(SAMPLE_PERIOD_S):
                rss_bytes = memory.read_bytes()
                is_flushing = on_sample(rss_bytes)
                use = processor.lap()
                spent = (use.own_s, use.others_s, use.children_s)
                own_percent, other_percent, children_percent = (100 * each / use.elapsed_s for each in spent)
                seen = gpu.read()
                table.append(
                    clock.now_ns(),
                    rss_bytes,
                    own_percent,
                    other_percent,
                    seen.memory_bytes,
                    seen.busy_percent,
                    is_flushing,
                    seen.clock_mhz,
                    seen.is_slowed,
                    children_percent,
                )
        except OSError as error:
            errors.append(error)

    thread = threading.Thread(target=sample, name="resources", daemon=True)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()
    if errors:
        raise errors[0]


def open_resources(path: Path) -> TableWriter:
    return TableWriter(path, RESOURCES)
