"""What XProf says of the same captures."""

from pathlib import Path

from benchmarks.verdict.plan import Planted
from benchmarks.verdict.record import Answer
from pipeline_lab.analysis.xprof.xprof import ask_xprof
from pipeline_lab.errors import Unavailable
from pipeline_lab.runs.run_folder import RunFolder


def print_beside_xprof(answers: list[tuple[Planted, Answer]]) -> None:
    """Ask XProf about the last window of each job's first repetition and print its verdict word for word."""
    print("\nXProf on the last window of each job:")
    for job, answer in answers:
        if answer.repetition == 0:
            print(
                f"{job.name} [{job.set}], planted {job.verdict_class}: {_ask(RunFolder(Path(answer.run)))}", flush=True
            )


def _ask(folder: RunFolder) -> str:
    windows = folder.windows()
    found = ask_xprof(sorted(windows[-1].glob("*.xplane.pb")) if windows else [])
    if isinstance(found, Unavailable):
        return found.reason
    share = (
        "no steps found" if found.input_percent is None else f"{found.steps} steps, {found.input_percent:.1f} % input"
    )
    return f"{share}; {found.verdict}"
