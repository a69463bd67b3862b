"""How the analyses read a trace: with the stats that they ask for, and a large one while they themselves are still being loaded.

Loading them keeps one core busy for a quarter of a second.
"""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from pipeline_lab.analysis.activity import iterators, markers
from pipeline_lab.analysis.diagnosis.inputs import is_run
from pipeline_lab.analysis.tf_data import kinds
from pipeline_lab.trace.archives import is_archive
from pipeline_lab.trace.parallel import has_other_core
from pipeline_lab.trace.schema import Trace
from pipeline_lab.trace.sources import TraceFile, look_at_file

LARGE_BYTES = 16 << 20
"""Files whose reading takes longer than to start a thread for it."""

_begun: dict[TraceFile, "Future[Trace]"] = {}


def asked_of(name: str) -> str | None:
    """Return the stat that the analyses ask of nearly all events of a name, None if there is none."""
    return kinds.asked_of(name) or iterators.asked_of(name) or markers.asked_of(name)


def read(file: TraceFile) -> Trace:
    """Read a trace, or wait until it is, where that has begun.

    Raises:
        TraceReadError: It cannot be read.
    """
    begun = _begun.pop(file, None)
    return file.read(asked_of) if begun is None else begun.result()


@contextmanager
def begun_ahead(path: Path) -> Iterator[None]:
    """Begin to read what lies at a path if that is one large trace, for :func:`read`."""
    is_alone = path.is_file() and not is_run(path) and not is_archive(path)
    if not is_alone or path.stat().st_size < LARGE_BYTES or not has_other_core():
        yield
        return
    files = look_at_file(path).files
    with ThreadPoolExecutor(1) as beside:
        _begun.update({file: beside.submit(file.read, asked_of) for file in files})
        try:
            yield
        finally:
            for file in files:
                _begun.pop(file, None)
