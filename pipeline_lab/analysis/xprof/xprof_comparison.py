"""Our diagnosis beside XProf's, and in words why they differ.

Every reason is tied to something that the trace, the diagnosis or XProf's own answer shows; where nothing shows one,
none is given. What XProf does was read in its sources (group_events.cc, step_events_to_steps_db.cc,
op_stats_to_input_pipeline_analysis.cc) and checked with xprof 2.24.
"""

import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline_lab.analysis.activity.activity import HOST_COMPUTE
from pipeline_lab.analysis.causes import VerdictClass
from pipeline_lab.analysis.xprof.xprof import XprofAnswer
from pipeline_lab.analysis.xprof.xprof_facts import KeptSteps, TraceFacts, counts_in_xprof, kept_steps
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import Unavailable
from pipeline_lab.units import format_count, format_duration, format_percent

if TYPE_CHECKING:
    from pipeline_lab.analysis.results import Diagnosis

CROSS_CHECK = "xprof"
"""Name under which a comparison is saved beside the diagnosis."""
_TF_DATA_TOOL = "tf_data_bottleneck_analysis"
_SAME_TIME = 0.05
_SAME_PERCENT = 2.0
UNEXPLAINED = "The trace does not show why."
_NO_STEPS = "XProf found no steps, and has no numbers without."
_NO_ROOT = (
    "XProf takes only events with _r=1 for step markers, as Trace('train', step_num=i, _r=1) writes them, and this trace "
    "has none."
)
_OTHER_STEPS = "The two are means over different steps."
_MARKED_ONLY = "XProf's step is the marked interval; ours also holds what passes between two markers."
_FOLLOWS = "It follows from its numbers above."
_THRESHOLDS = (
    "XProf calls a job input-bound once 5 % of the step is input, highly so from 20 %, and looks at nothing larger; "
    "ours names what holds the step up most."
)
_CLAIM = re.compile(r"is (HIGHLY|MODERATELY|POTENTIALLY|NOT) input-bound")
_BOUND = ("HIGHLY", "MODERATELY")


@dataclass(frozen=True)
class XprofDifference:
    """One quantity as we and as XProf have it.

    Attributes:
        quantity: What it is.
        ours, xprof: The values in words.
        reasons: Why they differ, one sentence each; empty where they agree.
    """

    quantity: str
    ours: str
    xprof: str
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class CrossCheck:
    """Our numbers beside XProf's.

    Attributes:
        version: Of the xprof package; empty when it gave no answer.
        seconds: Wall time of XProf's process; None when it gave no answer.
        peak_rss_bytes: Its largest resident size; None when it gave no answer.
        differences: One row per quantity; a row without reasons agrees.
    """

    version: str
    seconds: float | None
    peak_rss_bytes: int | None
    differences: tuple[XprofDifference, ...]

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "differences": [asdict(one) for one in self.differences]}


def compare_with_xprof(
    diagnosis: "Diagnosis", answer: XprofAnswer | Unavailable, facts: TraceFacts
) -> tuple[XprofDifference, ...]:
    """Put our numbers beside XProf's: steps, step time, input wait and its share, verdict, the stage at fault.

    Args:
        diagnosis: Ours.
        answer: XProf's about the same files, or why there is none.
        facts: Of the same traces.
    """
    if isinstance(answer, Unavailable):
        return _without_answer(diagnosis, answer)
    sides = _Sides(diagnosis, answer, facts)
    numbers = (sides.steps(), sides.step_time(), sides.input_wait(), sides.input_share())
    return (*numbers, sides.verdict(numbers), sides.stage())


def _without_answer(diagnosis: "Diagnosis", answer: Unavailable) -> tuple[XprofDifference, ...]:
    reasons = [answer.reason]
    if diagnosis.source.salvaged is not None:
        reasons.append(f"The log is damaged, and XProf reads none of it: {diagnosis.source.salvaged.reason}")
    return (XprofDifference("verdict", diagnosis.verdict.sentence, "no answer", tuple(reasons)),)


class _Sides:
    """Both answers to each question."""

    def __init__(self, diagnosis: "Diagnosis", answer: XprofAnswer, facts: TraceFacts) -> None:
        self._ours, self._xprof, self._facts = diagnosis, answer, facts

    def steps(self) -> XprofDifference:
        steps, found = self._ours.steps, self._xprof.steps
        xprof = format_count(found) if found else "none"
        if isinstance(steps, Unavailable):
            return XprofDifference("steps", "not found", xprof, (steps.reason,) if found else ())
        ours = f"{format_count(steps.count)}, marked by {steps.marker}"
        return XprofDifference("steps", ours, xprof, () if steps.count == found else self._why_other_steps(steps.count))

    def step_time(self) -> XprofDifference:
        ours, xprof = self._our_step_ns(), self._xprof.step_ns
        same = _same_time(ours, xprof)
        return XprofDifference(
            "step time (mean)", _time(ours), _time(xprof), () if same else self._why_other_time(ours, xprof)
        )

    def input_wait(self) -> XprofDifference:
        stalls = self._ours.input_stalls
        count = 0 if isinstance(self._ours.steps, Unavailable) else self._ours.steps.count
        ours = None if isinstance(stalls, Unavailable) or not count else stalls.wait_ns / count
        xprof = self._xprof.input_ns
        reasons = () if _same_time(ours, xprof) else self._why_other_input(ours, xprof)
        return XprofDifference("input wait per step (mean)", _time(ours), _time(xprof), reasons)

    def input_share(self) -> XprofDifference:
        stalls = self._ours.input_stalls
        ours = None if isinstance(stalls, Unavailable) else stalls.wait_percent
        xprof = self._xprof.input_percent
        same = ours is xprof or (ours is not None and xprof is not None and abs(ours - xprof) <= _SAME_PERCENT)
        wait, length = self.input_wait().reasons, self.step_time().reasons
        reasons = () if same else tuple(dict.fromkeys((*wait, *length))) or (UNEXPLAINED,)
        return XprofDifference("input share of the steps", _share(ours), _share(xprof), reasons)

    def verdict(self, numbers: Sequence[XprofDifference]) -> XprofDifference:
        ours, words = self._ours.verdict, self._xprof.verdict
        match = _CLAIM.search(words)
        claim = match[1] if match else ""
        reasons: tuple[str, ...] = ()
        if not claim:
            reasons = (_NO_STEPS,) if not self._xprof.steps else (UNEXPLAINED,)
        elif (ours.verdict_class is VerdictClass.INPUT_BOUND) != (claim in _BOUND):
            numeric = _FOLLOWS if any(row.reasons for row in numbers) else UNEXPLAINED
            reasons = (_THRESHOLDS,) if claim in _BOUND else (numeric,)
        return XprofDifference("verdict", ours.sentence, words or "none", reasons)

    def stage(self) -> XprofDifference:
        ours = self._ours.verdict.stage or "not named"
        if _TF_DATA_TOOL in self._xprof.offers:
            return XprofDifference("tf.data stage at fault", ours, "in its tf.data bottleneck tool", ())
        gone = f"xprof {self._xprof.version} has no tf.data bottleneck tool any more."
        return XprofDifference("tf.data stage at fault", ours, "not shown", (gone,) if self._facts.has_tf_data else ())

    def _why_other_steps(self, count: int) -> tuple[str, ...]:
        windows, reasons = self._ours.source.windows, list[str]()
        if self._facts.loop and not self._xprof.steps:
            reasons.append(f"A loop runs inside the steps ({self._facts.loop}); XProf then drops the explicit markers.")
        elif not self._xprof.steps and not self._is_marked_for_xprof():
            reasons.append(_NO_ROOT)
        if windows > 1:
            reasons.append(
                f"XProf takes the {windows} windows for {windows} hosts: it lays their steps over each other, keeps "
                "those that all of them have, and shows the times of one."
            )
        kept = self._kept
        if kept is not None and 0 < self._xprof.steps == kept.count < count:
            reasons.extend(kept.reasons)
        if self._xprof.warnings:
            reasons.append(f"XProf warns: {self._xprof.warnings[0].split('. ')[0].rstrip('.')}.")
        return tuple(reasons) or (UNEXPLAINED,)

    def _why_other_time(self, ours: float | None, xprof: int | None) -> tuple[str, ...]:
        if ours is None or xprof is None:
            return self._why_missing(ours=ours is None)
        if self.steps().reasons:
            return (_OTHER_STEPS, *self._why_kept_differ(xprof))
        if self._has_device():
            return (
                "XProf's step on a device lasts from its first to its last kernel; ours begins at the end of the "
                "previous one, so that the wait before the kernels belongs to it.",
            )
        return (_MARKED_ONLY,) if ours > xprof else (UNEXPLAINED,)

    def _why_kept_differ(self, xprof: int) -> tuple[str, ...]:
        """Say what else is different where even our mean over the steps that XProf keeps is another."""
        kept = self._kept
        if kept is None or kept.count != self._xprof.steps:
            return ()
        alike = [host for host, mean in kept.mean_ns.items() if _same_time(mean, xprof)]
        if alike and len(kept.mean_ns) > 1:
            return (f"Of the {len(kept.mean_ns)} hosts XProf shows one, by its times {alike[0]}; ours are of all.",)
        is_longer = not alike and all(mean > xprof for mean in kept.mean_ns.values())
        return (_MARKED_ONLY,) if is_longer and not self._has_device() else ()

    def _why_other_input(self, ours: float | None, xprof: int | None) -> tuple[str, ...]:
        if ours is None or xprof is None:
            return self._why_missing(ours=ours is None)
        if self._xprof.hardware == "TPU":
            return ("On a TPU XProf counts the device's infeed; ours is what the host waited.",)
        if ours > xprof == 0 and self._has_device():
            return (
                f"XProf joins host events to the steps only where there is no device; here is {self._device()}, so it "
                "reports 0 however long the host waited.",
            )
        if ours > xprof and (missed := self._missed_by_xprof()):
            return (f"XProf counts events whose names begin with IteratorGetNext; here {missed} waits too.",)
        if xprof > ours and (extra := self._extra_in_xprof()):
            return (f"XProf takes every event whose name begins with IteratorGetNext for waiting, here also {extra}.",)
        return self.step_time().reasons or (UNEXPLAINED,)

    def _why_missing(self, *, ours: bool) -> tuple[str, ...]:
        if not ours:
            return (_NO_STEPS,)
        missing = (one.reason for one in (self._ours.steps, self._ours.input_stalls) if isinstance(one, Unavailable))
        return (next(missing, UNEXPLAINED),)

    def _our_step_ns(self) -> float | None:
        steps = self._ours.steps
        if isinstance(steps, Unavailable) or not steps.count:
            return None
        start, end = (steps.table.column(name).to_numpy() for name in ("start_ns", "end_ns"))
        return float(np.mean(end - start))

    def _is_marked_for_xprof(self) -> bool:
        steps = self._ours.steps
        return not isinstance(steps, Unavailable) and steps.marker.startswith(("Trace '", "device "))

    def _has_device(self) -> bool:
        return bool(self._facts.devices) and self._xprof.hardware != "CPU_ONLY"

    def _device(self) -> str:
        gaps = self._ours.idle_gaps
        if isinstance(gaps, Unavailable) or gaps.device == HOST_COMPUTE:
            return self._facts.devices[0]
        return gaps.device

    @property
    def _kept(self) -> KeptSteps | None:
        """Of our steps those that XProf keeps; None where it lays windows over each other, or we have none."""
        steps = self._ours.steps
        return None if isinstance(steps, Unavailable) or self._ours.source.windows > 1 else kept_steps(steps)

    def _missed_by_xprof(self) -> str:
        stalls = self._ours.input_stalls
        counted = () if isinstance(stalls, Unavailable) else stalls.event_names
        return ", ".join(name for name in counted if not counts_in_xprof(name))

    def _extra_in_xprof(self) -> str:
        stalls = self._ours.input_stalls
        counted = () if isinstance(stalls, Unavailable) else stalls.event_names
        extra = sorted(
            ((total, name) for name, total in self._facts.input_names_ns.items() if name not in counted), reverse=True
        )
        return ", ".join(f"{name} ({format_duration(total)} in all)" for total, name in extra[:3] if total)


def _same_time(ours: float | None, xprof: float | None) -> bool:
    if ours is None or xprof is None:
        return ours is xprof
    return abs(ours - xprof) <= _SAME_TIME * max(ours, xprof)


def _time(value_ns: float | None) -> str:
    return "not measured" if value_ns is None else format_duration(value_ns)


def _share(percent: float | None) -> str:
    return "not measured" if percent is None else format_percent(percent)
