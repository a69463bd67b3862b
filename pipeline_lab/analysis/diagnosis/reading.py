"""How the analyses read a trace: with the stats that they ask for, and a large one while they themselves are still being loaded.

Loading them keeps one core busy for a quarter of a second.
"""

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

from pipeline_lab.analysis.activity import iterators, markers
from pipeline_lab.analysis.diagnosis.inputs import is_run
from pipeline_lab.analysis.tf_data import kinds
from pipeline_lab.trace.archives import is_archive
from pipeline_lab.trace.parallel import has_other_core, share_one_heap
from pipeline_lab.trace.schema import Trace
from pipeline_lab.trace.sources import TraceFile, look_at_file

LARGE_BYTES = 16 << 20
"""Files whose reading takes longer than to start a thread for it."""

_begun: dict[Path, tuple[TraceFile, "Future[Trace]"]] = {}


def asked_of(name: str) -> str | None:
    """Return the stat that the analyses ask of nearly all events of a name, None if there is none."""
    return kinds.asked_of(name) or iterators.asked_of(name) or markers.asked_of(name)


def read(file: TraceFile) -> Trace:
    """Read a trace, or wait until it is, where that has begun.

    Raises:
        TraceReadError: It cannot be read.
    """
    known, begun = _begun.pop(file.path, (None, None))
    return file.read(asked_of) if begun is None or known != file else begun.result()


@contextmanager
def begun_ahead(path: Path) -> Iterator[None]:
    """Begin to read what lies at a path if that is one large trace, for :func:`read`."""
    is_alone = path.is_file() and not is_run(path) and not is_archive(path)
    if not is_alone or path.stat().st_size < LARGE_BYTES or not has_other_core():
        yield
        return
    for file in look_at_file(path).files:
        _begun[path] = file, _begin(file)
    try:
        yield
    finally:
        _begun.pop(path, None)


def _begin(file: TraceFile) -> "Future[Trace]":
    """Read a trace on a thread that nobody waits for who no longer wants it, as after an interrupt."""
    found: Future[Trace] = Future()

    def work() -> None:
        try:
            found.set_result(file.read(asked_of))
        except BaseException as error:
            found.set_exception(error)

    share_one_heap()
    threading.Thread(target=work, daemon=True).start()
    return found
