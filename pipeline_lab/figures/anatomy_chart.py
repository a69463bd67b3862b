"""The anatomy of a step: one strip to scale, and below it the same step with the first suggestion carried out."""

import html
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
import pyarrow.compute as pc

from pipeline_lab.analysis.causes import StepPart, VerdictClass, Work
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.diagnosis.later_epochs import judged
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.analysis.steps.recorded_steps import Steps
from pipeline_lab.analysis.verdict.judged_parts import deciding_breakdown, judged_parts_ns, name_parts_basis
from pipeline_lab.analysis.verdict.verdict import Suggestion, Verdict
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.aggregate import IntArray, group_starts
from pipeline_lab.figures.theme import THEMES, Mode, add_note, color, new_figure, say
from pipeline_lab.figures.timeline_chart import KINDS, Segments, row_segments, timeline_rows
from pipeline_lab.units import NS_PER_MS, duration_unit, format_duration, format_percent

STRIP_HEIGHT = 62
NAMED_SHARE = 0.07
"""The part of the strip that has room for a name."""
LEAST_SEEN = 0.004
"""A smaller part of a strip is thinner than two pixels of a phone's screen; the legend leaves its color out."""
LEAST_NAMED = 0.02
"""Idle time of at least this part of a step is named in the caption."""
LONGEST_CHANGE = 60
PREDICTED = "predicted"
"""Name of the second strip, and of the text above it, which names the change; a page that names it already shortens that."""
LEGEND_ROW, USUAL_ROWS, LONGEST_BESIDE = 19, 2, 16
"""Height of a row of the legend, the rows that fit without more height, and the characters of a name that leave room for another one
beside it on a phone: all columns are as wide as the longest."""
CONTENDED = "taken by the input pipeline"
"""Name of what competition with the pipeline adds to a step's work."""
CUT, LEAST_CUT = "cut", 0.01
"""Name of the line where time outside of steps is cut out, and share of a window from which such time is."""
WINDOW_HEIGHT, AXIS_HEIGHT = 26, 46
MOST_LOOKED_AT = 60
"""Windows of a run that are compared to draw one of them."""
MAX_SEGMENTS, FINE_ENOUGH = 400, 0.8
"""Of the window, more are joined; and the share of it that is drawn from which they are fine enough."""


def step_anatomy(diagnosis: Diagnosis, mode: Mode = "light") -> go.Figure | Unavailable:
    """Draw what a profiled step consists of on average, to scale, and what the first suggestion would leave of it."""
    breakdown = diagnosis.step_breakdown
    if isinstance(breakdown, Unavailable):
        return breakdown
    parts = judged_parts_ns(diagnosis)
    if isinstance(parts, Unavailable):
        return parts
    step_ns = sum(parts.values())
    better = diagnosis.verdict.predicted
    seen = {part.label for part, length_ns in parts.items() if length_ns >= LEAST_SEEN * step_ns}
    strips_px = STRIP_HEIGHT * (1 + (better is not None))
    figure = new_figure("What a step consists of", mode, "Time per step (ms)", "", height=112 + strips_px)
    say(figure, _what_to_see(parts))
    add_note(figure, name_parts_basis(diagnosis, diagnosis.verdict.step, diagnosis.later_epochs))
    start_ns, recorded = 0.0, _recorded_ranges(diagnosis)
    for part, length_ns in parts.items():
        _add_part(figure, part, start_ns, length_ns, step_ns, recorded.get(part, ""), mode)
        start_ns += length_ns
    if diagnosis.verdict.verdict_class is VerdictClass.HOST_CONTENTION:
        _add_contention(figure, diagnosis.verdict, parts, step_ns, mode)
    if better is not None:
        left_ns = _add_prediction(figure, better, step_ns, mode)
        if why := _why_so_short(diagnosis, better, left_ns, parts):
            add_note(figure, why)
    figure.update_layout(barmode="overlay", bargap=0.42, dragmode=False, uniformtext={"minsize": 10, "mode": "hide"})
    figure.update_xaxes(range=[0, step_ns / NS_PER_MS], fixedrange=True)
    figure.update_yaxes(range=[-0.5 - (better is not None), 0.45], visible=False)
    window = window_with_steps(diagnosis)
    if window is None:
        add_note(figure, _why_no_window(diagnosis))
    else:
        title = (
            f"One recorded window of {window.segments.host}"
            if len(diagnosis.source.hosts) > 1
            else "One recorded window"
        )
        add_windows(figure, {"": window}, title, strips_px, seen, mode)
    make_room_for_legend(figure)
    return figure


def make_room_for_legend(figure: go.Figure, columns: int = 2) -> None:
    """Lengthen a chart by the rows that its legend has on a phone, where up to so many names stand beside each other."""
    named = [bar.name or "" for bar in figure.data if bar.showlegend is not False]
    fitting = columns if max(map(len, named), default=0) <= LONGEST_BESIDE else 1
    figure.update_layout(height=figure.layout.height + LEGEND_ROW * max(0, -(-len(named) // fitting) - USUAL_ROWS))


@dataclass(frozen=True, eq=False)
class DrawnWindow:
    """What a device did in one recorded window.

    Attributes:
        segments: When it worked and waited.
        steps: Where the steps lie in it, shape (n, 2), ns on the axis of the segments.
    """

    segments: Segments
    steps: IntArray

    @property
    def whole_ns(self) -> int:
        return int(self.segments.end_ns[-1] - self.segments.start_ns[0])

    @property
    def shown_ns(self) -> int:
        """Its length without what is cut out."""
        return self.whole_ns - sum(end - start for start, end in self.cuts_ns)

    @property
    def cuts_ns(self) -> list[tuple[int, int]]:
        """The long stretches of the window that are in no step, from its start; none where no step lies in it."""
        begin, end = int(self.segments.start_ns[0]), int(self.segments.end_ns[-1])
        inside = self.steps[(self.steps[:, 1] > begin) & (self.steps[:, 0] < end)]
        if not len(inside):
            return []
        edges = [begin, *np.clip(inside, begin, end).ravel().tolist(), end]
        outside = [(one - begin, other - begin) for one, other in zip(edges[::2], edges[1::2], strict=True)]
        return [(start, stop) for start, stop in outside if stop - start >= LEAST_CUT * self.whole_ns]

    @property
    def shown_share(self) -> float:
        return self.shown_ns / self.whole_ns if self.cuts_ns else float(bool(len(self.steps)))

    def place(self, times_ns: IntArray) -> IntArray:
        """Return where times of the window are drawn, ns from the left."""
        from_begin = np.asarray(times_ns, np.int64) - self.segments.start_ns[0]
        drawn: IntArray = from_begin.copy()
        for start, end in self.cuts_ns:
            drawn -= np.clip(from_begin - start, 0, end - start)
        return drawn


def window_with_steps(diagnosis: Diagnosis) -> DrawnWindow | None:
    """Return the window that steps fill most of, of the host that the others wait for; None where nothing was recorded.

    Of very many windows :data:`MOST_LOOKED_AT` are looked at, evenly chosen.
    """
    gaps, steps, hosts = diagnosis.idle_gaps, diagnosis.steps, diagnosis.hosts
    if isinstance(gaps, Unavailable) or not (rows := timeline_rows(gaps)):
        return None
    last = None if isinstance(hosts, Unavailable) else hosts.straggler
    worked_ns = {(each.host, each.name): each.busy_ns for each in gaps.devices}
    candidates = [row[:2] for row in rows if row[0] == last] or [row[:2] for row in rows if row[0] == rows[0][0]]
    host, device = max(candidates, key=lambda one: worked_ns.get(one, 0))  # of equal ones the first
    own = [row for row in rows if row[:2] == (host, device)]
    chosen = sorted(group_starts(len(own), MOST_LOOKED_AT).tolist(), key=lambda place: abs(place - len(own) // 2))
    rows = [own[place] for place in chosen]  # of equal ones that in the middle
    windows = [DrawnWindow(row_segments(gaps, row, MAX_SEGMENTS), _steps_of(steps, host, row[2])) for row in rows]
    best = max(windows, key=lambda window: round(10 * window.shown_share))  # what differs by less is the same
    if best.shown_share > FINE_ENOUGH:
        return best
    finer = int(MAX_SEGMENTS / max(best.shown_share, 0.1))
    return replace(best, segments=row_segments(gaps, rows[windows.index(best)], finer))


def _steps_of(steps: Steps | Unavailable, host: str, window: int) -> IntArray:
    if isinstance(steps, Unavailable):
        return np.empty((0, 2), np.int64)
    is_here = pc.and_(pc.equal(steps.table.column("host"), host), pc.equal(steps.table.column("window"), window))
    table = steps.table.filter(is_here)
    return np.stack([tables.ints(table, "start_ns"), tables.ints(table, "end_ns")], axis=1)


def _why_no_window(diagnosis: Diagnosis) -> str:
    """Say why a window cannot be drawn, and how to record what it shows."""
    gaps = diagnosis.idle_gaps
    reason = gaps.reason if isinstance(gaps, Unavailable) else "Nothing was recorded of when the device worked."
    return f"No strip of a recorded window: {reason[:1].lower()}{reason[1:]}"


def shortest_ns(windows: Mapping[str, DrawnWindow]) -> float:
    """Return the length of what is drawn of the shortest window."""
    return min(float(each.shown_ns) for each in windows.values())


def add_windows(
    figure: go.Figure, windows: Mapping[str, DrawnWindow], title: str, strips_px: int, named: set[str], mode: Mode
) -> None:
    """Draw below the strips of a chart when devices worked and waited, a row each, as long as the shortest window.

    What is in no step is cut out, because the strips above do not hold it.

    Args:
        figure: Of the strips, with what the legend names.
        windows: By the label of their row; one alone has none.
        title: Of their axis, without its unit.
        strips_px: Height of what is drawn of the strips.
        named: What the legend names already.
        mode: Light or dark.
    """
    length_ns = shortest_ns(windows)
    unit = duration_unit(length_ns)
    for number, kind in enumerate(KINDS):
        base: list[float] = []
        length: list[float] = []
        rows: list[int] = []
        for row, window in enumerate(windows.values()):
            mine = window.segments.kind == number
            starts = np.minimum(window.place(window.segments.start_ns[mine]), length_ns)
            ends = np.minimum(window.place(window.segments.end_ns[mine]), length_ns)
            inside = ends > starts
            base.extend(starts[inside] / unit[0])
            length.extend((ends - starts)[inside] / unit[0])
            rows.extend([row] * int(inside.sum()))
        if not base:
            continue
        is_seen = bool(sum(length) * unit[0] >= LEAST_SEEN * length_ns)
        figure.add_bar(
            base=base,
            x=length,
            y=rows,
            orientation="h",
            name=kind.label,
            showlegend=is_seen and kind is not Work.BUSY and kind.label not in named,
            marker={"color": color(kind.value, mode), "line": {"width": 0}},
            hovertemplate=f"{kind.label}: %{{x:.3g}} {unit[1]} from %{{base:.4g}} {unit[1]}<extra></extra>",
            xaxis="x2",
            yaxis="y2",
        )
    if _mark_cuts(figure, windows, length_ns, unit[0], mode):
        title += f",{' ' if len(windows) == 1 else '<br>'}without the time outside of steps"
    rows_px = WINDOW_HEIGHT * len(windows)
    below = rows_px + AXIS_HEIGHT
    whole = strips_px + below
    figure.update_layout(
        height=figure.layout.height + below,
        yaxis_domain=[below / whole, 1],
        xaxis_anchor="y",
        yaxis2={
            "title": {"text": ""},
            "domain": [0, rows_px / whole],
            "visible": len(windows) > 1,
            "range": [len(windows) - 0.5, -0.5],
            "tickvals": list(range(len(windows))),
            "ticktext": list(windows),
            "showgrid": False,
            "zeroline": False,
        },
        xaxis2={
            "anchor": "y2",
            "title": {"text": f"{title} ({unit[1]})"},
            "range": [0, length_ns / unit[0]],
            "fixedrange": True,
        },
    )


def _mark_cuts(
    figure: go.Figure, windows: Mapping[str, DrawnWindow], length_ns: float, unit_ns: float, mode: Mode
) -> bool:
    """Draw a line where time was cut out between steps; return whether any was, there or at an end."""
    for row, window in enumerate(windows.values()):
        for place in window.place(np.array([start for start, _ in window.cuts_ns]) + window.segments.start_ns[0]):
            if 0 < place < length_ns:
                figure.add_shape(
                    name=CUT,
                    type="line",
                    x0=place / unit_ns,
                    x1=place / unit_ns,
                    y0=row - 0.5,
                    y1=row + 0.5,
                    xref="x2",
                    yref="y2",
                    line={"color": THEMES[mode].paper, "width": 3},
                )
    return any(window.cuts_ns for window in windows.values())


def _what_to_see(parts: dict[StepPart, float]) -> str:
    """Name what the device waits for most, beside its work."""
    step_ns = sum(parts.values())
    idle = {part: length for part, length in parts.items() if part.cause is not None}
    lost = max(idle, key=idle.__getitem__, default=None)
    longest = max(parts, key=parts.__getitem__)
    of_longest = f"{longest.label.capitalize()} fills {format_percent(100 * parts[longest] / step_ns)} of a step"
    if lost is None or lost is longest or parts[lost] < LEAST_NAMED * step_ns:
        return f"{of_longest}."
    return f"{of_longest}, {lost.label} {format_percent(100 * parts[lost] / step_ns)}."


def _add_contention(
    figure: go.Figure, verdict: Verdict, parts: dict[StepPart, float], step_ns: float, mode: Mode
) -> None:
    """Hatch what the input pipeline takes from the step's work, at its end: no trace shows where it lies in it."""
    work = max((part for part in parts if part.cause is None), key=parts.__getitem__, default=None)
    if work is None or verdict.lost_percent is None:
        return
    length_ns = min(parts[work], verdict.lost_percent / 100 * step_ns)
    end_ns = sum(list(parts.values())[: list(parts).index(work) + 1])
    figure.add_bar(
        base=[(end_ns - length_ns) / NS_PER_MS],
        x=[length_ns / NS_PER_MS],
        y=[0],
        orientation="h",
        name=CONTENDED,
        marker={
            "color": color(StepPart.INPUT_WAIT.category, mode),
            "line": {"width": 0},
            "pattern": {
                "shape": "/",
                "fillmode": "overlay",
                "fgcolor": color(work.category, mode),
                "size": 8,
                "solidity": 0.4,
            },
        },
        hovertemplate=f"{CONTENDED}: {format_duration(length_ns)}, estimated<extra></extra>",
    )


def _why_so_short(diagnosis: Diagnosis, suggestion: Suggestion, left_ns: float, parts: dict[StepPart, float]) -> str:
    """Say why a step may become shorter than what is drawn of it beside what is lost; empty where it does not."""
    if diagnosis.verdict.verdict_class not in (VerdictClass.INPUT_BOUND, VerdictClass.HOST_CONTENTION):
        working_ns = sum(length_ns for part, length_ns in parts.items() if part.cause is None)
        why = suggestion.why_beside("") if left_ns < working_ns else ""
        return why and f"Predicted to take less than the work drawn: {why}"
    if left_ns >= sum(parts.values()) - parts.get(StepPart.INPUT_WAIT, 0.0):
        return ""
    calibration = judged(diagnosis).calibration
    alone = (
        ""
        if isinstance(calibration, Unavailable)
        else f": alone it takes {format_duration(calibration.device_only_ns)}"
    )
    return f"Predicted shorter than the step without its wait, because the input pipeline slows the rest, too{alone}."


def _recorded_ranges(diagnosis: Diagnosis) -> dict[StepPart, str]:
    """Say of each part how long it is in the recorded steps behind the mean; nothing of one alone, or where hosts take turns."""
    breakdown, steps = diagnosis.step_breakdown, diagnosis.steps
    if isinstance(breakdown, Unavailable) or isinstance(steps, Unavailable) or breakdown.table.num_rows < 2:
        return {}
    if deciding_breakdown(diagnosis) is not breakdown:
        return {}
    per_marker, numbers = steps.steps_per_marker or 1.0, breakdown.table.column("step").to_pylist()
    said = {}
    for part in StepPart:
        lengths = tables.ints(breakdown.table, part.column) / per_marker
        least, median, most = (format_duration(float(each)) for each in np.quantile(lengths, (0, 0.5, 1)))
        longest = numbers[int(lengths.argmax())]
        each = f"single steps: {least} to {most}, median {median}; longest in step {longest}"
        of_several = f"means of {per_marker:g} steps each: {least} to {most}, median {median}"
        said[part] = f"<br>{each if per_marker == 1 else of_several}"
    return said


def _add_part(
    figure: go.Figure, part: StepPart, start_ns: float, length_ns: float, step_ns: float, recorded: str, mode: Mode
) -> None:
    share, length = length_ns / step_ns, format_duration(length_ns)
    figure.add_bar(
        base=[start_ns / NS_PER_MS],
        x=[length_ns / NS_PER_MS],
        y=[0],
        orientation="h",
        name=part.label,
        marker={"color": color(part.category, mode), "line": {"width": 1, "color": THEMES[mode].paper}},
        text=[f"<b>{length}</b>" if share >= NAMED_SHARE else ""],
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        showlegend=bool(share >= LEAST_SEEN),
        hovertemplate=f"{part.label}: {length}, {format_percent(100 * share)} of the step{recorded}<extra></extra>",
    )


def _add_prediction(figure: go.Figure, suggestion: Suggestion, step_ns: float, mode: Mode) -> float:
    """Draw the step that a suggestion would leave, and return its length."""
    gain = suggestion.predicted_gain_percent
    assert not isinstance(gain, Unavailable)
    left_ns = step_ns * (1 - gain / 100)
    change = suggestion.change.rstrip(".")
    shown = change if len(change) <= LONGEST_CHANGE else change[: LONGEST_CHANGE - 1].rstrip() + "…"
    figure.add_bar(
        x=[left_ns / NS_PER_MS],
        y=[-1],
        orientation="h",
        name=PREDICTED,
        marker={
            "color": THEMES[mode].shade,
            "line": {"width": 2, "color": THEMES[mode].muted},
            "pattern": {"shape": "/", "fgcolor": THEMES[mode].muted, "size": 6, "solidity": 0.2},
        },
        hovertemplate=f"{suggestion.prediction}<extra></extra>",
        showlegend=True,
    )
    figure.add_annotation(
        name=PREDICTED,
        x=0,
        y=-0.53,
        xanchor="left",
        showarrow=False,
        text=f"{html.escape(shown)}: <b>{format_percent(gain)} shorter</b>, predicted",
        font={"size": 12},
    )
    return left_ns
