"""Say what a chosen event, gap, wait or step is, and what went on meanwhile."""

from typing import Any, assert_never

import pyarrow.compute as pc

from pipeline_lab.analysis.activity.event_names import ITERATOR, Kind, host_kind, operation
from pipeline_lab.analysis.causes import GapCause, Work
from pipeline_lab.analysis.input.pipeline_stages import join_stages
from pipeline_lab.analysis.metrics.metric import Topic
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.analysis.tf_data.iterator_places import place_of
from pipeline_lab.analysis.tf_data.written_words import say_calls
from pipeline_lab.analysis.timeline.arrangement import title_lanes
from pipeline_lab.analysis.timeline.index import Index
from pipeline_lab.analysis.timeline.lanes import CLASSES, LaneKind
from pipeline_lab.analysis.timeline.look import FoundEvent, NameTime, rank_operations, step_at
from pipeline_lab.analysis.timeline.range_sums import ClassTime, RangeSums, sum_range
from pipeline_lab.analysis.timeline.wait_cause import find_cause
from pipeline_lab.errors import Unavailable
from pipeline_lab.units import format_count, format_duration, format_percent

MAX_OPERATIONS = 8
ALL_ROLES = ("training", "tf.data", "other")
TOO_MANY = "Too many events to rank; choose a shorter time range."
Facts = list[tuple[str, str]]


def class_name(name: str) -> str:
    """Return the display name of a class of events."""
    return Work(name).label if name in set(Work) else GapCause(name).label


def explain_event(index: Index, diagnosis: Diagnosis | None, found: FoundEvent) -> dict[str, Any]:
    """Describe one event as plain values: where it lies, a title, facts, and ranked operations where that helps."""
    lane = index.lanes[found.lane]
    title, facts, section = _describe(index, diagnosis, found)
    meanwhile: dict[str, Any] | None = None
    causes: list[dict[str, Any]] = []
    if lane.kind in (LaneKind.DEVICE, LaneKind.WAITS, LaneKind.STEPS) and CLASSES[found.event_class] != "busy":
        ranked = rank_operations(index, lane.host, (found.start_ns, found.end_ns), ALL_ROLES)
        meanwhile = _say_ranked(index, diagnosis, ranked, found.duration_ns)
        if lane.kind is LaneKind.WAITS or CLASSES[found.event_class] == GapCause.INPUT_WAIT:
            causes, said = _causes(index, diagnosis, found, ranked or [])
            facts += said
    return {
        "lane": found.lane,
        "layer": found.layer,
        "start": found.start_ns,
        "end": found.end_ns,
        "pick": _pick(found),
        "title": title,
        "facts": [("Starts", f"{format_duration(found.start_ns)} into the run"), *facts],
        "meanwhile": meanwhile,
        "causes": causes,
        "section": section.value if section else None,
    }


def _pick(found: FoundEvent) -> str:
    return f"{found.lane}.{found.layer}@{found.start_ns}"


def _causes(
    index: Index, diagnosis: Diagnosis | None, found: FoundEvent, ranked: list[NameTime]
) -> tuple[list[dict[str, Any]], Facts]:
    """Name the event that a wait was for, and its stage; nothing where the critical path does not show it."""
    span = found.start_ns, found.end_ns
    cause = (
        None if diagnosis is None else find_cause(index, diagnosis.tf_data, index.lanes[found.lane].host, span, ranked)
    )
    if cause is None:
        return [], []
    event = cause.event
    stage = " · ".join([cause.path.rpartition("::")[2], *_written_as(diagnosis, f"{ITERATOR}{cause.path}")])
    label = operation(index.names[event.name]) or index.labels[event.name]
    doing = "" if place_of(index.names[event.name]) else f", {label}"
    thread = title_lanes(index)[event.lane]
    said = f"{stage}{doing}: {_share(cause.time_ns, found.duration_ns)}, on {thread}"
    row = {"lane": event.lane, "layer": event.layer, "start": event.start_ns, "end": event.end_ns, "pick": _pick(event)}
    return [row], [("Waited for", said)]


def _describe(index: Index, diagnosis: Diagnosis | None, found: FoundEvent) -> tuple[str, Facts, Topic | None]:
    lane, length = index.lanes[found.lane], format_duration(found.duration_ns)
    name = CLASSES[found.event_class]
    match lane.kind:
        case LaneKind.WINDOWS if name == GapCause.CAPTURE_GAP:
            return f"Profiler off for {length}", [("Note", "Nothing was recorded here.")], None
        case LaneKind.WINDOWS:
            return f"{index.labels[found.name]}, {length}", [], None
        case LaneKind.STEPS:
            return f"{index.labels[found.name]}, {length}", _step_facts(diagnosis, found, lane.host), Topic.STALLS
        case LaneKind.WAITS:
            return f"Input wait of {length}", _wait_facts(index, diagnosis, found, lane.host), Topic.STALLS
        case LaneKind.DEVICE if name == "busy":
            return f"{lane.label} busy for {length}", _place(index, found), Topic.GAPS
        case LaneKind.DEVICE if name == Work.SHORT_GAPS:
            facts = [*_place(index, found), *_stretch_facts(diagnosis, found, lane.host, lane.label)]
            return f"{length} of work and short idle gaps", facts, Topic.GAPS
        case LaneKind.DEVICE:
            title = f"Idle gap of {length}: {class_name(name)}"
            return title, [*_place(index, found), *_gap_facts(diagnosis, found, lane.host, lane.label)], Topic.GAPS
        case LaneKind.STREAM | LaneKind.THREAD:
            return index.labels[found.name], _call_facts(index, diagnosis, found), None
        case _:
            assert_never(lane.kind)


def _call_facts(index: Index, diagnosis: Diagnosis | None, found: FoundEvent) -> Facts:
    full = index.names[found.name]
    facts = [
        ("Lasts", format_duration(found.duration_ns)),
        ("Thread", title_lanes(index)[found.lane]),
        *_place(index, found),
        ("Kind", class_name(CLASSES[found.event_class])),
    ]
    facts += [("Full name", full)] if full != index.labels[found.name] else []
    facts += [("Written as", words) for words in _written_as(diagnosis, full)]
    facts.append(("Total", f"{format_count(index.counts[found.name])} events, {_total(index, found.name)}"))
    return facts


def _written_as(diagnosis: Diagnosis | None, name: str) -> tuple[str, ...]:
    """Name the calls behind a stage's event; nothing for other events."""
    path = place_of(name)
    if path is None or diagnosis is None:
        return ()
    stages = join_stages(diagnosis.tf_data, diagnosis.live_model, diagnosis.written)
    found = () if isinstance(stages, Unavailable) else stages
    calls = next((stage.written for stage in found if stage.path == path), ())
    return (say_calls(calls),) if calls else ()


def _total(index: Index, name: int) -> str:
    return format_duration(index.totals_ns[name])


def _place(index: Index, found: FoundEvent) -> Facts:
    """Name host (if there are several) and step."""
    host = index.lanes[found.lane].host
    hosts = {lane.host for lane in index.lanes if lane.host}
    facts = [("Host", host)] if len(hosts) > 1 else []
    step = step_at(index, host, found.start_ns)
    return [*facts, ("Step", index.labels[step.name].removeprefix("Step ") if step else "between the steps")]


def _step_facts(diagnosis: Diagnosis | None, found: FoundEvent, host: str) -> Facts:
    if diagnosis is None or isinstance(diagnosis.steps, Unavailable):
        return []
    row = _row(diagnosis.steps.table, found.start_ns, host=host)
    return (
        []
        if row is None
        else [
            ("Waited for input", _share(row["wait_ns"], found.duration_ns)),
            ("with the device idle", _share(row["exposed_ns"], found.duration_ns)),
            ("Device busy", _share(row["busy_ns"], found.duration_ns)),
        ]
    )


def _wait_facts(index: Index, diagnosis: Diagnosis | None, found: FoundEvent, host: str) -> Facts:
    facts = _place(index, found)
    if diagnosis is None or isinstance(diagnosis.input_stalls, Unavailable):
        return facts
    row = _row(diagnosis.input_stalls.table, found.start_ns, host=host)
    if row is None:
        return facts
    number = [("Step", str(row["step"]))] if row["step"] is not None else []
    left = [fact for fact in facts if fact[0] != "Step" or not number]
    return [*left, *number, ("Device idle", _share(row["exposed_ns"], found.duration_ns))]


def _gap_facts(diagnosis: Diagnosis | None, found: FoundEvent, host: str, device: str) -> Facts:
    if diagnosis is None or isinstance(diagnosis.idle_gaps, Unavailable):
        return []
    row = _row(diagnosis.idle_gaps.gaps, found.start_ns, host=host, device=device)
    if row is None:
        return []
    parts = sorted(((row[f"{cause.value}_ns"], cause) for cause in GapCause), reverse=True)
    shares = ", ".join(f"{cause.label} {_percent(ns, found.duration_ns)}" for ns, cause in parts if ns)
    facts = [("Device", device), ("Divides into", shares)]
    return [*facts, ("Host operation", row["host_operation"])] if row["host_operation"] else facts


def _stretch_facts(diagnosis: Diagnosis | None, found: FoundEvent, host: str, device: str) -> Facts:
    if diagnosis is None or isinstance(diagnosis.idle_gaps, Unavailable):
        return []
    row = _row(diagnosis.idle_gaps.mixed, found.start_ns, host=host, device=device)
    if row is None:
        return []
    return [("Gaps", format_count(row["gaps"])), ("Device idle", _share(row["idle_ns"], found.duration_ns))]


def _row(table: Any, start_ns: int, **same: str) -> dict[str, Any] | None:
    chosen = pc.equal(table.column("start_ns"), start_ns)
    for column, value in same.items():
        chosen = pc.and_(chosen, pc.equal(table.column(column), value))
    rows: list[dict[str, Any]] = table.filter(chosen).slice(0, 1).to_pylist()
    return rows[0] if rows else None


def _say_ranked(
    index: Index, diagnosis: Diagnosis | None, ranked: list[NameTime] | None, span_ns: int
) -> dict[str, Any]:
    """Say what the threads of hosts did; a wait is not explained by the events that wait."""
    if ranked is None:
        return {"note": TOO_MANY, "rows": []}
    useful = [
        one for one in ranked if not host_kind(index.names[one.name]) & (Kind.WAIT | Kind.OUTER_WAIT | Kind.LOOP_WAIT)
    ]
    titles = title_lanes(index)
    rows = [
        {
            "name": " · ".join([index.labels[one.name], *_written_as(diagnosis, index.names[one.name])]),
            "thread": titles[one.lane],
            "time": format_duration(one.self_ns),
            "share": _percent(one.self_ns, span_ns),
            "calls": format_count(one.calls),
        }
        for one in useful[:MAX_OPERATIONS]
    ]
    note = "" if rows else "The threads recorded nothing here."
    if len(useful) > len(rows):
        note = f"{len(useful) - len(rows)} more names took less. Over 100 % means several threads at once."
    return {"note": note, "rows": rows}


def _rank_hosts(index: Index, span: tuple[int, int]) -> list[NameTime] | None:
    """Rank what the threads of all hosts did; None where it is too much of a host."""
    hosts = dict.fromkeys(lane.host for lane in index.lanes if lane.kind is LaneKind.THREAD)
    ranked = [rank_operations(index, host, span, ALL_ROLES) for host in hosts]
    if any(one is None for one in ranked):
        return None
    return sorted((one for part in ranked for one in part or ()), key=lambda one: -one.self_ns)


def explain_range(index: Index, diagnosis: Diagnosis | None, span: tuple[int, int]) -> dict[str, Any]:
    """Say what a stretch of time went into, as plain values: a title, facts, the sums by cause, ranked operations."""
    sums = sum_range(index, span)
    waits = [
        (
            class_name(CLASSES[one.event_class]).capitalize(),
            f"{format_count(one.events)} ×, {format_duration(one.time_ns)}",
        )
        for one in sums.waits
    ]
    recorded = f", {format_duration(sums.recorded_ns)} of it recorded" if sums.recorded_ns < sums.span_ns else ""
    of = "The device's time" if sums.devices == 1 else f"Time of {sums.devices} devices, added up"
    return {
        "start": span[0],
        "end": span[1],
        "title": f"Range of {format_duration(sums.span_ns)}{recorded}",
        "facts": [("Starts", f"{format_duration(span[0])} into the run"), *_range_steps(sums), *waits],
        "sums": {"caption": f"{of}, by cause", "rows": [_sum_row(one, sums) for one in sums.by_cause]},
        "meanwhile": _say_ranked(index, diagnosis, _rank_hosts(index, span), sums.span_ns),
    }


def _range_steps(sums: RangeSums) -> Facts:
    if sums.steps is None:
        return [("Steps", "none")]
    first, last, count = sums.steps
    return [("Steps", first if count == 1 else f"{first} to {last} ({format_count(count)})")]


def _sum_row(one: ClassTime, sums: RangeSums) -> dict[str, Any]:
    name, whole_ns = CLASSES[one.event_class], sums.recorded_ns * sums.devices
    return {
        "class": one.event_class,
        "name": f"idle: {class_name(name)}" if name in set(GapCause) else class_name(name),
        "part": one.time_ns / max(1, whole_ns),
        "time": format_duration(one.time_ns),
        "share": _percent(one.time_ns, whole_ns),
        "calls": format_count(one.events),
    }


def _share(part_ns: int, whole_ns: int) -> str:
    return f"{format_duration(part_ns)} ({_percent(part_ns, whole_ns)})"


def _percent(part_ns: int, whole_ns: int) -> str:
    return format_percent(100 * part_ns / max(1, whole_ns))
