"""In which order the lanes of a timeline stand, what each is called, and which are shown at first."""

import re
from collections import Counter
from typing import Any

from pipeline_lab.analysis.timeline.index import Index
from pipeline_lab.analysis.timeline.lanes import LaneKind
from pipeline_lab.analysis.timeline.writing import Lane

SHOWN_THREADS = 12
"""Threads per host that are shown at first; a run of many hosts shows fewer of each."""
_ROLES = ("stream", "training", "waits", "tf.data", "other")
_PURPOSES = {"training": "training thread", "waits": "waits for input"}
_THREAD_ID = re.compile(r"/-?\d+$")
_DIGITS = re.compile(r"(\d+)")


def arrange_lanes(index: Index) -> list[dict[str, Any]]:
    """Return the lanes from top to bottom, host by host, each with whether it is shown at first.

    Shown are all lanes of the diagnosis, the streams, the training thread, and the busiest of the threads that wait
    for input, that are tf.data's, and of the others.
    """
    hosts = _hosts(index)
    titles = title_lanes(index)
    seen: dict[str, int] = {}
    arranged = []
    limit = max(3, SHOWN_THREADS // max(1, len(hosts)))
    for number in _in_order(index):
        lane = index.lanes[number]
        if lane.kind is LaneKind.THREAD:
            seen[lane.host] = seen.get(lane.host, 0) + 1
        arranged.append(
            {
                "lane": number,
                "kind": lane.kind.value,
                "title": titles[number],
                "host": lane.host if len(hosts) > 1 else "",
                "layers": lane.layers,
                "shown": lane.kind is not LaneKind.THREAD or (seen[lane.host] <= limit and lane.busy_ns > 0),
            }
        )
    return arranged


def title_lanes(index: Index) -> list[str]:
    """Return what each lane is called, by its number; lanes of one host differ in it.

    Threads of one name are numbered from the busiest one on, and each says what it does most; streams of several
    devices name theirs.
    """
    titles = [_THREAD_ID.sub("", lane.label) for lane in index.lanes]
    several = len({(lane.host, lane.group) for lane in index.lanes if lane.kind is LaneKind.STREAM}) > 1
    for number, lane in enumerate(index.lanes):
        if lane.kind is LaneKind.DEVICE:
            titles[number] = f"{short_device(lane.label)}: busy and idle by cause"
        elif lane.kind is LaneKind.STREAM and several:
            titles[number] = f"{short_device(lane.group)} {lane.label}"
    alike = Counter((lane.host, title) for lane, title in zip(index.lanes, titles, strict=True))
    seen: Counter[tuple[str, str]] = Counter()
    for number in _in_order(index):
        lane, key = index.lanes[number], (index.lanes[number].host, titles[number])
        if alike[key] > 1:
            seen[key] += 1
            titles[number] += f" {seen[key]} of {alike[key]}"
        if lane.kind is LaneKind.THREAD:
            says = _PURPOSES.get(_role(lane), "")
            says = says or (f"mostly {lane.mostly}" if lane.mostly else "")
            titles[number] += f" ({says})" if says else ""
    return titles


def short_device(name: str) -> str:
    """Return a device's name without what all of them begin with."""
    return name.removeprefix("/device:")


def _in_order(index: Index) -> list[int]:
    """Return the numbers of the lanes from top to bottom."""
    hosts, kinds = _hosts(index), list(LaneKind)

    def order(number: int) -> tuple[int, int, int, list[str | int], int]:
        lane = index.lanes[number]
        host = -1 if lane.kind is LaneKind.WINDOWS else hosts.index(lane.host)
        device = {LaneKind.DEVICE: lane.label, LaneKind.STREAM: lane.group}.get(lane.kind, "")
        return host, kinds.index(lane.kind), _ROLES.index(_role(lane)), _natural(device), -lane.busy_ns

    return sorted(range(len(index.lanes)), key=order)


def _hosts(index: Index) -> list[str]:
    return list(dict.fromkeys(lane.host for lane in index.lanes if lane.kind is not LaneKind.WINDOWS))


def _natural(name: str) -> list[str | int]:
    """Split a name so that ``GPU:10`` comes after ``GPU:2``."""
    return [int(part) if part.isdecimal() else part for part in _DIGITS.split(name)]


def _role(lane: Lane) -> str:
    if lane.kind is not LaneKind.THREAD:
        return "stream"
    return "waits" if lane.waits and lane.role == "other" else lane.role
