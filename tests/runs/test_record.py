import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_lab.errors import StoreError
from pipeline_lab.runs.record import SCHEMA_VERSION, Process, RunKind, RunRecord, RunState, RunStatus

RECORD = RunRecord("20260101-a", "a", RunStatus(RunState.DONE, created_s=1.0), options={"name": "a"}, tags=("x",))


@pytest.mark.slow
@given(
    st.builds(
        RunRecord,
        id=st.text(),
        name=st.text(),
        status=st.builds(
            RunStatus,
            state=st.sampled_from(RunState),
            reason=st.text(),
            created_s=st.floats(0, 1e10),
            started_s=st.none() | st.floats(0, 1e10),
            supervisor=st.none()
            | st.builds(
                Process,
                pid=st.integers(1, 9),
                created_s=st.floats(0, 1e10),
                host=st.text(),
                started_ticks=st.none() | st.integers(0),
            ),
            exit_code=st.none() | st.integers(-64, 255),
        ),
        options=st.none() | st.dictionaries(st.text(), st.integers()),
        tags=st.lists(st.text()).map(tuple),
        notes=st.text(),
        schema_version=st.just(SCHEMA_VERSION),
    )
)
def test_json_comes_back_equal(record: RunRecord) -> None:
    assert RunRecord.from_json(record.to_json()) == record


def document(**changes: Any) -> str:
    return json.dumps(json.loads(RECORD.to_json()) | changes)


def test_what_a_newer_version_added_is_ignored() -> None:
    assert RunRecord.from_json(document(color="red")) == RECORD


def test_a_newer_schema_is_refused_with_advice() -> None:
    with pytest.raises(StoreError, match=r"written by a newer Pipeline Lab \(schema 99, .*; upgrade to open it"):
        RunRecord.from_json(document(schema_version=99))


def status(**changes: Any) -> str:
    return document(status=json.loads(RECORD.to_json())["status"] | changes)


@pytest.mark.parametrize(
    "text",
    [
        *["", "[]", "{}", "null", document(status={"state": "dancing"}), document(status=3), document()[:40]],
        *[status(created_s=1e18), status(started_s="today"), status(ended_s=float("nan"))],
        *[status(supervisor={"pid": pid, "created_s": 1.0}) for pid in ("1", -1, 2**40)],
        status(supervisor={"pid": 1}),
        document(options="OPTIONS").replace('"OPTIONS"', '{"a":' * 100_000 + "1" + "}" * 100_000),
    ],
)
def test_a_damaged_record_says_so(text: str) -> None:
    with pytest.raises(StoreError, match=r"run\.json is damaged .* can still be analyzed"):
        RunRecord.from_json(text)


def test_three_states_are_live() -> None:
    assert [state.value for state in RunState if state.is_live] == ["queued", "starting", "running"]


@pytest.mark.parametrize(
    ("options", "kind"),
    [(None, RunKind.LOG), ({"name": "baseline"}, RunKind.RUN), ({"kind": "race", "arms": []}, RunKind.RACE)],
)
def test_the_options_tell_what_a_folder_holds(options: dict[str, Any] | None, kind: RunKind) -> None:
    assert RunRecord.from_json(document(options=options)).kind is kind


def test_a_kind_that_a_newer_version_added_is_refused_with_advice() -> None:
    with pytest.raises(StoreError, match=r"is a dance, which this Pipeline Lab does not know; upgrade to open it"):
        RunRecord.from_json(document(options={"kind": "dance"}))


def test_a_run_takes_no_time_that_nobody_knows() -> None:
    took = [
        RunStatus(RunState.DONE, started_s=10.0, ended_s=12.5),
        RunStatus(RunState.DONE, started_s=10.0, ended_s=9.0),  # the clock was set back
        RunStatus(RunState.LOST, started_s=10.0),
        RunStatus(RunState.QUEUED),
    ]
    assert [status.took_s for status in took] == [2.5, None, None, None]
    assert (RunStatus(RunState.RUNNING, started_s=10.0).took_s or 0) > 0
