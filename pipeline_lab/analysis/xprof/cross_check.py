"""Ask XProf about the traces that a diagnosis was made from, and put both side by side."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from pipeline_lab.analysis.diagnosis.inputs import is_run, opened_log, window_files
from pipeline_lab.analysis.diagnosis.saved import SavedDiagnosis, fingerprint_inputs
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.analysis.xprof.xprof import XprofLimits, ask_xprof
from pipeline_lab.analysis.xprof.xprof_comparison import CROSS_CHECK, CrossCheck, compare_with_xprof
from pipeline_lab.analysis.xprof.xprof_facts import TraceFacts, find_facts
from pipeline_lab.errors import TraceReadError, Unavailable
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.trace.schema import Trace
from pipeline_lab.trace.sources import find_traces
from pipeline_lab.trace.xplane.xspace import read_xplane

DEFAULT_LIMITS = XprofLimits()


def cross_check(path: Path, diagnosis: Diagnosis, limits: XprofLimits = DEFAULT_LIMITS) -> CrossCheck:
    """Compare a diagnosis with XProf's view of the same files; XProf runs in a process of its own.

    Args:
        path: What was diagnosed: a run folder, a log directory, a trace file or an archive.
        diagnosis: Ours.
        limits: What XProf may cost.

    Raises:
        TraceReadError: The traces are gone.
    """
    with _trace_files(path) as files:
        answer = ask_xprof(files, limits)
        if isinstance(answer, Unavailable):
            return CrossCheck("", None, None, compare_with_xprof(diagnosis, answer, _NO_FACTS))
        differences = compare_with_xprof(diagnosis, answer, find_facts(_read(files)))
    return CrossCheck(answer.version, answer.seconds, answer.peak_rss_bytes, differences)


def cross_check_saved(path: Path, diagnosis: Diagnosis) -> CrossCheck:
    """Return the saved comparison, or make and save it.

    Raises:
        TraceReadError: The traces are gone.
    """
    saved = SavedDiagnosis(path)
    found = saved.load_beside(CROSS_CHECK, CrossCheck)
    if found is not None:
        return found
    inputs = fingerprint_inputs(path)
    check = cross_check(path, diagnosis)
    with contextlib.suppress(OSError):  # a full disk does not keep the answer from being shown
        saved.save_beside(CROSS_CHECK, check, inputs)
    return check


_NO_FACTS = TraceFacts("", (), {}, has_tf_data=False)


@contextlib.contextmanager
def _trace_files(path: Path) -> Iterator[Sequence[Path]]:
    """Find the traces; those of an archive lie unpacked until the context ends."""
    if is_run(path):
        folder = RunFolder(path)
        path = opened_log(folder) or path
        if path == folder.path:
            yield window_files(folder)
            return
    with find_traces(path) as source:
        yield [file.path for file in source.files]


def _read(files: Sequence[Path]) -> Iterator[Trace]:
    """Read one trace after another; XProf answered for them, so one that we cannot read only lacks its facts."""
    for file in files:
        try:
            yield read_xplane(file)
        except TraceReadError:
            continue
