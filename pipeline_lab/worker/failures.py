"""Say in one sentence why a job failed, and leave that in the run even when the disk is full."""

import contextlib
import errno
import traceback
from collections.abc import Iterator

from pipeline_lab.errors import PipelineLabError
from pipeline_lab.runs.events import FailureEvent
from pipeline_lab.runs.store import RunFolder
from pipeline_lab.worker.event_log import EventLog

DISK_FULL = "The disk is full: free some space or choose another store and cache, then launch the run again."
OUT_OF_DEVICE_MEMORY = "The device ran out of memory: use a smaller batch, smaller images or a lower precision."
OUT_OF_MEMORY = "The process ran out of memory: use a smaller batch, shuffle buffer or cache."


def report_failure(folder: RunFolder, log: EventLog, error: BaseException) -> None:
    """Write the error into the run; room that was held back is given up first if the disk is full."""
    if is_disk_full(error):
        folder.reserve.unlink(missing_ok=True)
    event = FailureEvent(explain_failure(error), "".join(traceback.format_exception(error)))
    try:
        log.write(event)
    except OSError:
        folder.reserve.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            log.write(event)


def explain_failure(error: BaseException) -> str:
    """Word an error for people."""
    if is_disk_full(error):
        return DISK_FULL
    if isinstance(error, PipelineLabError):
        return str(error)
    if isinstance(error, MemoryError):
        return OUT_OF_MEMORY
    kind, text = type(error).__name__, _first_line(error)
    if kind == "ResourceExhaustedError":
        return OUT_OF_DEVICE_MEMORY
    if "which is outside the valid range" in text:
        return f"A label in the data is too large for the model ({text[:120]}); set workload.classes to cover it."
    return f"The job stopped with {kind}: {text[:300].rstrip('.')}; worker.log in the run folder has the details."


def is_disk_full(error: BaseException) -> bool:
    """Say whether an error, or one behind it, means that the disk is full."""
    return any(
        (isinstance(link, OSError) and link.errno in (errno.ENOSPC, errno.EDQUOT))
        or "no space left on device" in str(link).lower()
        for link in _chain(error)
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        yield link
        seen.add(id(link))
        link = link.__cause__ or link.__context__


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else "no message"
