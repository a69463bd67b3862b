"""One run as JSON, for ``run --json`` and ``runs … --json``."""

from typing import TYPE_CHECKING, Any

from pipeline_lab.runs.events import ProgressEvent, read_events

if TYPE_CHECKING:
    from pipeline_lab.runs.record import RunRecord
    from pipeline_lab.runs.store import RunFolder


def run_document(folder: "RunFolder", record: "RunRecord") -> dict[str, Any]:
    """Return what there is to say about a run without opening its traces; times in seconds since the epoch."""
    status = record.status
    progress = last_progress(folder)
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
        "steps": progress.steps if progress else 0,
        "windows": len(folder.windows()),
        "tags": list(record.tags),
        "notes": record.notes,
    }


def last_progress(folder: "RunFolder") -> ProgressEvent | None:
    """Return the newest count of steps; None for a run that did not get as far."""
    counts = [event for event in read_events(folder.events) if isinstance(event, ProgressEvent)]
    return counts[-1] if counts else None
