"""``python -m pipeline_lab.analysis PATH [--follow | --xprof | --timeline]``: diagnose and save, for the app, which parses nothing."""

import argparse
import contextlib
import resource
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

from pipeline_lab.analysis.diagnosis.executors import processes_if_many
from pipeline_lab.analysis.diagnosis.inputs import is_run
from pipeline_lab.analysis.diagnosis.saved import SavedDiagnosis, fingerprint_inputs
from pipeline_lab.collecting import collect_rarely
from pipeline_lab.errors import PipelineLabError
from pipeline_lab.runs import opened_logs
from pipeline_lab.runs.run_folder import RunFolder


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 when the diagnosis is saved (or another process is at it), 1 when it failed."""
    parser = argparse.ArgumentParser(
        prog="python -m pipeline_lab.analysis", description="Diagnose and save the result."
    )
    parser.add_argument("path", type=Path, help="a run folder, a log directory, a trace file or an archive")
    parser.add_argument("--follow", action="store_true", help="keep at it, at lowest priority, until the run ends")
    parser.add_argument("--xprof", action="store_true", help="also compare with XProf, and save that")
    parser.add_argument("--timeline", action="store_true", help="also make the index of the timeline")
    options = parser.parse_args(arguments)
    saved = SavedDiagnosis(options.path)
    _limit_memory()
    with _report_errors(saved) as failed, saved.lock() as is_ours:
        if is_ours and options.follow and is_run(options.path):
            from pipeline_lab.analysis.follow import follow, yield_to_training

            yield_to_training()
            follow(RunFolder(options.path), saved)
        elif is_ours:
            _diagnose_once(options.path, saved)
            if options.xprof:
                _cross_check_once(options.path, saved)
            if options.timeline:
                _index_once(options.path, saved)
    if is_run(options.path):
        with contextlib.suppress(PipelineLabError, OSError):
            opened_logs.note_reading(RunFolder(options.path), failed[0] if failed and not saved.is_fresh else "")
    return 1 if failed else 0


def _limit_memory() -> None:
    """Let a hostile or damaged log end this process with a sentence, before the machine runs out of memory.

    Mapped files do not count; the kernel drops their pages when it needs room.
    """
    if sys.platform != "linux":
        return
    most = int(psutil.virtual_memory().available * SHARE_OF_MEMORY)
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


SHARE_OF_MEMORY = 0.8
MOST_PROCESSES = 2
"""The app analyzes several runs at a time, beside whatever is measured."""


def _diagnose_once(path: Path, saved: SavedDiagnosis) -> None:
    if path.exists() and saved.is_fresh:
        return
    from pipeline_lab.analysis.diagnosis.diagnose import diagnose

    inputs = fingerprint_inputs(path)
    saved.save(diagnose(path, progress=saved.save_progress, spread=processes_if_many(MOST_PROCESSES)), inputs)
    saved.end_progress()


def _cross_check_once(path: Path, saved: SavedDiagnosis) -> None:
    from pipeline_lab.analysis.xprof.cross_check import cross_check_saved

    diagnosis = saved.load()
    if diagnosis is not None:
        cross_check_saved(path, diagnosis)


def _index_once(path: Path, saved: SavedDiagnosis) -> None:
    inputs = fingerprint_inputs(path)
    diagnosis = saved.load()
    if diagnosis is None or saved.timeline is not None:
        return
    from pipeline_lab.analysis.timeline.build import build_index

    saved.save_timeline(lambda folder: build_index(path, diagnosis, folder, saved.save_progress), inputs)
    saved.end_progress()


@contextlib.contextmanager
def _report_errors(saved: SavedDiagnosis) -> Iterator[list[str]]:
    """Leave a readable sentence behind, whatever goes wrong; yields a list that holds it afterwards."""
    failed: list[str] = []
    try:
        yield failed
    except (PipelineLabError, OSError, MemoryError) as error:
        failed.append(str(error) or "The analysis ran out of memory; analyze fewer or shorter windows.")
    if failed:
        print(failed[0], file=sys.stderr)  # noqa: T201
        with contextlib.suppress(OSError):
            saved.save_error(failed[0])
            saved.end_progress()


if __name__ == "__main__":
    collect_rarely()
    sys.exit(main())
