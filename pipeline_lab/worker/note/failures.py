"""Say in one sentence why a job or the user's code failed, and write that into the run even when the disk is full."""

import contextlib
import errno
import os
import re
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import NoReturn

from pipeline_lab.errors import PipelineLabError, UserCodeError
from pipeline_lab.runs.machine.nvidia import Gpu, find_gpu, gpu_ordinal
from pipeline_lab.runs.run_events import FailureEvent
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.units import NS_PER_S, format_bytes, format_duration
from pipeline_lab.worker.job_context import StopRequestedError
from pipeline_lab.worker.note.event_log import EventLog

_OWN = (f"{Path(__file__).resolve().parents[2]}{os.sep}", "<frozen ")
_SCRATCH = RunFolder(Path()).scratch.name
_UNSAID: dict[type[BaseException], str] = {StopIteration: "the data had ended"}
"""Meaning of errors without a message."""
_FRAME = re.compile(r'File "([^"]+)", line (\d+)')
"""A line of a traceback, which TensorFlow quotes in its message about a Python function."""


def user_frames(traceback: TracebackType | None) -> TracebackType | None:
    """Return a traceback from its first frame outside this package and the import machinery."""
    while traceback is not None and traceback.tb_frame.f_code.co_filename.startswith(_OWN):
        traceback = traceback.tb_next
    return traceback


def explain_user_error(error: BaseException, home: Path, subject: str) -> str:
    """Say in one sentence what ended the user's code, with file and line if below ``home``."""
    place = name_place(error, home)
    stopped = f"{subject} stopped at {place}" if place else f"{subject} stopped"
    if _ALLOCATION.search(text_of(error)):
        return f"{stopped}: {_explain_allocation(text_of(error))}"
    said = describe(error)
    if place and isinstance(error, SyntaxError) and error.filename:  # whose message ends with the place
        said = said.removesuffix(f" ({Path(error.filename).name}, line {error.lineno})")
    return f"{stopped} with {said}."


def describe(error: BaseException) -> str:
    """Return type and message of an error."""
    said = first_line(error)
    if _FRAME.search(text_of(error)):  # TensorFlow's message includes the type of the Python error
        return said
    said = said or _UNSAID.get(type(error), "")
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


_NODE = "Detected at node"
_LEADING = (
    re.compile(r"\x1b\[\d*m"),
    re.compile(r"Exception encountered when calling [^\n]*\n\s*\n\s*"),
    re.compile(r"in user code:[ \t]*\n[ \t]*\n.*?\n[ \t]*\n", re.DOTALL),
)
"""What stands before the message itself: bold type, the Keras layer that was called, the lines that AutoGraph read."""
_ASIDES = re.compile(r"Graph execution error:|<stack traces unavailable>|Node: '.*'|\d+ root error\(s\) found\.")
"""Lines of an error of a graph that are not its cause."""
_NAMES = re.compile(r"\{\{.*?\}\}|\[Op:[^\]]*\](?: name: ?)?")
_WRAPPINGS = re.compile(
    r"^(\(\d+\) [A-Z_]+: )?(Error in user-defined function passed to \S+ transformation with iterator: \S+: )?"
)


def first_line(error: BaseException) -> str:
    """Return the first line of the message that says what happened, without TensorFlow's node names; empty without one.

    An error of a graph begins with the place where each node was made, ``Detected at node …`` and indented lines below it.
    """
    is_place, text = False, text_of(error)
    for leading in _LEADING:
        text = leading.sub("", text)
    for line in text.splitlines():
        is_place = line.startswith(_NODE) or (is_place and (not line.strip() or line[0].isspace()))
        telling = "" if is_place else _WRAPPINGS.sub("", _NAMES.sub("", line).strip())
        if telling and not _ASIDES.fullmatch(telling):
            return telling[:300].rstrip(".")
    return ""


def text_of(error: BaseException) -> str:
    """Return the message of an error; TensorFlow's about a binary record can fail to decode."""
    return error.object.decode(errors="replace") if isinstance(error, UnicodeDecodeError) else str(error)


def name_place(error: BaseException, home: Path) -> str:
    """Return the innermost line below ``home`` that raised an error; empty without one."""
    if isinstance(error, SyntaxError) and error.filename and (name := below(error.filename, home)):
        return f"{name}, line {error.lineno}"
    place, traceback = "", user_frames(error.__traceback__)
    for file, line in _FRAME.findall(text_of(error)):
        if name := below(file, home):
            place = f"{name}, line {line}"
    if place:
        return place
    while traceback is not None:
        if name := below(traceback.tb_frame.f_code.co_filename, home):
            place = f"{name}, line {traceback.tb_lineno}"
        traceback = traceback.tb_next
    return place


def place_of_frame(frame: FrameType | None, home: Path) -> str:
    """Return the innermost line below ``home`` of a thread; empty without one."""
    while frame is not None:
        if name := below(frame.f_code.co_filename, home):
            return f"{name}, line {frame.f_lineno}"
        frame = frame.f_back
    return ""


def below(path: str, home: Path) -> str:
    """Return a path relative to a folder; empty if outside, or among packages installed below it or what a run generated.

    Names in angle brackets, such as ``<frozen runpy>``, are not files.
    """
    if path.startswith("<"):
        return ""
    found = Path(path).resolve()
    if not found.is_relative_to(home) or str(found).startswith(_OWN):
        return ""
    inside = found.relative_to(home)
    return "" if {"site-packages", _SCRATCH} & set(inside.parts) else str(inside)


DISK_FULL = "The disk is full: free some space or choose another store and cache, then launch the run again."
OUT_OF_DEVICE_MEMORY = "The device ran out of memory: use a smaller batch, smaller images or a lower precision."
_ALLOCATION = re.compile(r"shape ?\[([\d,]*)\] and type (\w+) on \S*/device:(\w+:\d+) by allocator")
OUT_OF_MEMORY = "The process ran out of memory: use a smaller batch, shuffle buffer or cache."
_KNOWN = {
    r"label value of (-\d+) which is outside the valid range": (
        "The data holds the label {0}, but labels are the numbers of classes, starting at 0; change the labels."
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
        "A record is not a tf.train.Example; the images workload reads Examples with an image and a label."
    ),
    r"BrokenProcessPool": (
        "A process that produces examples was killed, most likely because memory ran out: use fewer workers."
    ),
    r"(Unknown image file format|Invalid \w+ data)": (
        "An image of the data cannot be decoded ({0}); JPEG, PNG, GIF and BMP can."
    ),
}
"""Messages of TensorFlow about the data, with their meaning; groups of the pattern fill the sentence."""


def report_failure(folder: RunFolder, log: EventLog, error: BaseException) -> None:
    """Write the error into the run; on a full disk, the reserve is freed first."""
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
    """Explain an error in one sentence."""
    if is_disk_full(error):
        return DISK_FULL
    if isinstance(error, PipelineLabError):
        return str(error)
    if isinstance(error, MemoryError):
        return OUT_OF_MEMORY
    kind = type(error).__name__
    if kind == "ResourceExhaustedError":
        return _explain_allocation(text_of(error))
    for pattern, sentence in _KNOWN.items():
        if match := re.search(pattern, text_of(error)):
            return sentence.format(*match.groups())
    return f"The job stopped with {kind}: {first_line(error) or 'no message'}; worker.log in the run folder has the details."


def _explain_allocation(message: str) -> str:
    """Say which tensor had no room."""
    found = _ALLOCATION.search(message)
    if found is None:
        return OUT_OF_DEVICE_MEMORY
    shape, kind, device = found.groups()
    if device.startswith("CPU"):
        return OUT_OF_MEMORY
    tensor = f"{kind} [{shape.replace(',', ', ')}]"
    return (
        f"{device} ran out of memory at a tensor of {tensor}: {_blame_others(find_gpu(gpu_ordinal(device)))}use a smaller "
        "batch, smaller images or a lower precision."
    )


OTHERS_SHARE = 0.1
"""Of a GPU's memory: from here on, a job that lacks some is told that others hold it."""


def _blame_others(gpu: Gpu) -> str:
    """Say how much of a GPU's memory other processes hold, where that is known and much."""
    total, others = gpu.total_bytes or 0, gpu.others_bytes or 0
    if not total or others < OTHERS_SHARE * total:
        return ""
    return f"other processes hold {format_bytes(others)} of its {format_bytes(total)}; end them, or "


def is_disk_full(error: BaseException) -> bool:
    """Say whether an error, or a cause of it, means that the disk is full."""
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


SUBJECT = "Your code"
Report = Callable[[UserCodeError], None]


_leave: Callable[[int], NoReturn] = os._exit
"""The original function, which is replaced while the user's code runs."""


@contextlib.contextmanager
def explaining_errors(home: Path, maker: str = "") -> Iterator[None]:
    """Turn the errors of the block into a sentence that names the user's file and line.

    Args:
        home: The folder below which code is the user's.
        maker: What to check where a TensorFlow operation fails, which has no line of Python.
    """
    try:
        yield
    except (PipelineLabError, StopRequestedError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        if is_disk_full(error) or type(error).__name__ == "ResourceExhaustedError":
            raise
        sentence = explain_user_error(error, home, SUBJECT)
        if maker and not name_place(error, home):
            sentence = f"{sentence.rstrip('.')}; check {maker} and the step."
        raise UserCodeError(sentence) from error


@contextlib.contextmanager
def explaining_hard_exits(stop: Callable[[], None]) -> Iterator[None]:
    """Keep ``os._exit`` from ending the job without an explanation, while the block runs.

    It raises instead, so that everything recorded is written and the job fails with a sentence that names the line.
    Forked processes exit as usual.

    Args:
        stop: Asks the job to end, for a call on another thread.
    """
    process = os.getpid()
    left: list[UserCodeError] = []

    def leave_in_order(status: int) -> NoReturn:
        if os.getpid() != process:
            _leave(status)
        frame = sys._getframe(1)
        place = f"{Path(frame.f_code.co_filename).name}, line {frame.f_lineno}"
        left.append(UserCodeError(f"{SUBJECT} called os._exit({status}) at {place}."))
        stop()
        raise left[0]

    before, os._exit = os._exit, leave_in_order
    try:
        yield
    except BaseException:
        if left:
            raise left[0] from None
        raise
    finally:
        os._exit = before
    if left:
        raise left[0]


class FirstBatch:
    """Ends a job whose first batch does not arrive, and says where its code is.

    Args:
        limit_s: From building the dataset, or the end of a rest, to its first batch; None for no limit.
        home: The folder below which code is the user's.
        report: Writes the sentence into the run.
    """

    def __init__(self, limit_s: float | None, home: Path, report: Report) -> None:
        self._limit_s, self._home, self._report = limit_s, home, report
        self._came = threading.Event()
        self._is_expected = False

    def expect(self, maker: str) -> None:
        """Start to wait; a second call does nothing, except after a rest.

        Args:
            maker: The function that makes the dataset, with file and line.
        """
        if not self._is_expected and self._limit_s is not None:
            self._is_expected = True
            waiting = (maker, self._limit_s, self._came)
            threading.Thread(target=self._wait, args=waiting, name="first batch", daemon=True).start()

    def came(self) -> None:
        self._came.set()

    def rest(self) -> None:
        """Stop waiting until the next :meth:`expect`: other arms of a race take their first batches."""
        self._came.set()
        self._came = threading.Event()
        self._is_expected = False

    def _wait(self, maker: str, limit_s: float, came: threading.Event) -> None:
        if came.wait(limit_s):
            return
        limit = format_duration(limit_s * NS_PER_S)
        place = self._place()
        where = f"Python is at {place}" if place else f"none of your Python code runs; check {maker}"
        self._report(
            UserCodeError(f"No batch arrived within {limit}: {where}. Raise workload.first_batch_s if it needs longer.")
        )
        _leave(1)

    def _place(self) -> str:
        """Return where the user's code is; threads of the pipeline come before the one that waits for them."""
        main = threading.main_thread().ident
        frames = sorted(sys._current_frames().items(), key=lambda item: item[0] == main)
        places = (place_of_frame(frame, self._home) for _, frame in frames)
        return next(filter(None, places), "")
