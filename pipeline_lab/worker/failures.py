"""Say in one sentence why a job failed, and leave that in the run even when the disk is full."""

import contextlib
import errno
import re
import traceback
from collections.abc import Iterator

from pipeline_lab.errors import PipelineLabError
from pipeline_lab.runs.events import FailureEvent
from pipeline_lab.runs.store import RunFolder
from pipeline_lab.worker.code_places import gist, text_of
from pipeline_lab.worker.event_log import EventLog

DISK_FULL = "The disk is full: free some space or choose another store and cache, then launch the run again."
OUT_OF_DEVICE_MEMORY = "The device ran out of memory: use a smaller batch, smaller images or a lower precision."
OUT_OF_MEMORY = "The process ran out of memory: use a smaller batch, shuffle buffer or cache."
_KNOWN = {
    r"label value of (-\d+) which is outside the valid range": (
        "The data holds the label {0}, but labels are the numbers of classes, from 0 on; change the labels."
    ),
    r"label value of (-?\d+) which is outside the valid range of \[0, (\d+)\)": (
        "The data holds the label {0}, but the model has {1} classes; set workload.classes above the largest label."
    ),
    r"Feature: (.+?) \(data type: (\w+)\) is required but could not be found": (
        "A record has no feature {0!r} of type {1}; set workload.image_feature and workload.label_feature to the names "
        "in your records."
    ),
    r"Key: ([^,]+?)(?:, Index: \d+)?\.\s+Data types don't match\. Data type: (\w+) but expected type: (\w+)": (
        "The feature {0!r} of a record is of type {1}, not {2}; images must be encoded bytes, labels int64."
    ),
    r"Could not parse example input": (
        "A record is no tf.train.Example; the images workload reads Examples with an image and a label."
    ),
    r"BrokenProcessPool": (
        "A process that makes examples ended all at once; it was killed, most likely because memory ran out: use fewer workers."
    ),
    r"(Unknown image file format|Invalid \w+ data)": (
        "An image of the data cannot be decoded ({0}); JPEG, PNG, GIF and BMP can."
    ),
}
"""What TensorFlow says about a user's data, and what it means; groups of the pattern fill the sentence."""


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
    kind = type(error).__name__
    if kind == "ResourceExhaustedError":
        return OUT_OF_DEVICE_MEMORY
    for pattern, sentence in _KNOWN.items():
        if match := re.search(pattern, text_of(error)):
            return sentence.format(*match.groups())
    return f"The job stopped with {kind}: {gist(error) or 'no message'}; worker.log in the run folder has the details."


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
