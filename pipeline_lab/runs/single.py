"""Tell one job, run or log, from what holds several."""

from pathlib import Path

from pipeline_lab.errors import ComparisonError
from pipeline_lab.runs.record import RunKind
from pipeline_lab.runs.store import RunFolder, read_record


def check_is_one(path: Path) -> None:
    """Refuse the folder of a race or a search, which is no single job.

    Raises:
        ComparisonError: It is one.
    """
    folder = RunFolder(path)
    kind = read_record(folder).kind if folder.record.is_file() else None
    if kind is RunKind.RACE:
        raise ComparisonError(refuse_race(folder.id))
    if kind is RunKind.TUNE:
        raise ComparisonError(
            f"{folder.id} is a search, whose trials are runs and races of their own: `pipeline-lab report {folder.id}` "
            "names them."
        )


def refuse_race(race_id: str) -> str:
    return f"{race_id} is a race and holds its own comparison: `pipeline-lab report {race_id}`."
