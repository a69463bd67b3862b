"""One run as JSON, for ``run --json`` and ``runs … --json``."""

from typing import TYPE_CHECKING, Any

from pipeline_lab.runs.record import RunKind
from pipeline_lab.runs.run_events import ProgressEvent, read_events

if TYPE_CHECKING:
    from pipeline_lab.runs.record import RunRecord
    from pipeline_lab.runs.store import RunFolder


def run_document(folder: "RunFolder", record: "RunRecord") -> dict[str, Any]:
    """Return what there is to say about a run without opening its traces; times in seconds since the epoch.

    ``steps`` is None where nobody counts them: in a race, and in a job that was watched from outside.
    """
    status = record.status
    return {
        "schema_version": 1,
        "id": folder.id,
        "name": record.name,
        "path": str(folder.path),
        "state": status.state.value,
        "reason": status.reason,
        "created_s": status.created_s,
        "started_s": status.started_s,
        "ended_s": status.ended_s,
        "exit_code": status.exit_code,
        "steps": _count_steps(folder, record),
        "windows": len(folder.windows()),
        "tags": list(record.tags),
        "notes": record.notes,
    }


def _count_steps(folder: "RunFolder", record: "RunRecord") -> int | None:
    counts = [event.steps for event in read_events(folder.events) if isinstance(event, ProgressEvent)]
    if counts:
        return counts[-1]
    return 0 if record.kind is RunKind.RUN else None
