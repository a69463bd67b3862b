"""How a trial's run ended, as a search needs to know it."""

from pipeline_lab.runs.record import RunRecord, RunState


def took_s(record: RunRecord) -> float:
    """Return how long a run that is over took, from its turn to its end, s."""
    status = record.status
    return max(0.0, (status.ended_s or 0.0) - (status.started_s or status.ended_s or 0.0))


def failure_of(record: RunRecord) -> str:
    """Return why a run did not end as planned, or an empty text."""
    if record.status.state is RunState.DONE:
        return ""
    return record.status.reason or f"It was {record.status.state.value}."
