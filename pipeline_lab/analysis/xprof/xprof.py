"""XProf's own answer for the same trace files, from a process of its own with a time and a memory limit.

XProf keeps a cache beside the trace that it reads, so it is given links in a folder of its own and leaves nothing in
the user's log directory. What it says is kept as it says it; `xprof_comparison` puts ours beside it.
"""

import gzip
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from pipeline_lab.analysis.xprof.xprof_process import TOOLS
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import Unavailable
from pipeline_lab.units import NS_PER_MS, format_bytes

SUFFIX, GZIPPED = ".xplane.pb", ".gz"
_LOOK_EVERY_S = 0.05


@dataclass(frozen=True)
class XprofLimits:
    """What XProf may cost.

    Attributes:
        seconds: Wall time.
        memory_bytes: Resident size; it is looked at some twenty times a second.
    """

    seconds: float = 300.0
    memory_bytes: int = 8_000_000_000


@dataclass(frozen=True)
class XprofAnswer:
    """What XProf says about a trace.

    Attributes:
        version: Of the xprof package.
        hardware: ``CPU_ONLY``, ``GPU``, ``TPU``, …
        steps: Steps that it found.
        step_ns: Mean step time; None without steps.
        input_ns: Mean input time per step; None without steps.
        input_percent: Input time of all steps over their time; None without steps.
        verdict: Its conclusion on input, word for word.
        statement: Its recommendation on the overview page, word for word; empty if that page failed.
        warnings: Its warnings on the capture.
        offers: The tools that it offers for this trace.
        seconds: Wall time of the whole process, starting it included.
        tool_seconds: Wall time of each tool alone.
        peak_rss_bytes: Largest resident size.
    """

    version: str
    hardware: str
    steps: int
    step_ns: int | None
    input_ns: int | None
    input_percent: float | None
    verdict: str
    statement: str
    warnings: tuple[str, ...]
    offers: tuple[str, ...]
    seconds: float
    tool_seconds: Mapping[str, float]
    peak_rss_bytes: int


USUAL_LIMITS = XprofLimits()


def ask_xprof(paths: Sequence[Path], limits: XprofLimits = USUAL_LIMITS) -> XprofAnswer | Unavailable:
    """Ask XProf about the trace files of one run; it takes several for several hosts.

    Returns:
        Its answer, or what happened instead.
    """
    if not paths:
        return Unavailable("There is no trace file to show to XProf.")
    foreign = next((path for path in paths if not path.name.removesuffix(GZIPPED).endswith(SUFFIX)), None)
    if foreign is not None:
        return Unavailable(f"XProf reads *{SUFFIX} files only, and {foreign.name} is none.")
    missing = next((path for path in paths if not path.is_file()), None)
    if missing is not None:
        return Unavailable(f"{missing} is gone, so XProf cannot be asked about it.")
    if importlib.util.find_spec("xprof") is None:
        return Unavailable("XProf is not installed; `pip install xprof` adds it.")
    with tempfile.TemporaryDirectory(prefix="pipeline-lab-xprof-") as folder:
        return _ask(paths, limits, Path(folder))


def _ask(paths: Sequence[Path], limits: XprofLimits, folder: Path) -> XprofAnswer | Unavailable:
    output, log = folder / "answer.json", folder / "log.txt"
    links = [_link(folder, number, path) for number, path in enumerate(paths)]
    begin = time.monotonic()
    with log.open("wb") as stream:
        process = subprocess.Popen(
            _command(output, limits, links), stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, env=_environment()
        )
        try:
            stopped = _watch(process, limits)
        finally:
            process.kill()
            process.wait()
    seconds = time.monotonic() - begin
    if stopped is not None:
        return Unavailable(f"{stopped} on {format_bytes(_size(paths))} of trace and was stopped.")
    if process.returncode != 0:
        return Unavailable(f"XProf {_ending(process.returncode)} on this trace{_last_words(log)}.")
    return _read_answer(json.loads(output.read_text()), seconds)


def _command(output: Path, limits: XprofLimits, links: Sequence[Path]) -> list[str]:
    module = "pipeline_lab.analysis.xprof.xprof_process"
    return [sys.executable, "-m", module, str(output), str(limits.seconds), *map(str, links)]


def _link(folder: Path, number: int, path: Path) -> Path:
    """Link a file under a name of its own, as windows of one host repeat the host's name; unpack a gzipped one there."""
    link = folder / "session" / f"{number}.{path.name.removesuffix(GZIPPED)}"
    link.parent.mkdir(exist_ok=True)
    if not path.name.endswith(GZIPPED):
        link.symlink_to(path.resolve())
        return link
    with gzip.open(path) as packed, link.open("wb") as unpacked:
        shutil.copyfileobj(packed, unpacked)
    return link


def _environment() -> dict[str, str]:
    """Let the process find this package wherever the parent found it."""
    root = str(Path(__file__).resolve().parents[3])
    inherited = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{inherited}" if inherited else root}


def _watch(process: "subprocess.Popen[bytes]", limits: XprofLimits) -> str | None:
    """Wait for the process; return why it has to be stopped, or None when it ended by itself."""
    end = time.monotonic() + limits.seconds
    watched = psutil.Process(process.pid)
    while True:
        try:
            process.wait(_LOOK_EVERY_S)
        except subprocess.TimeoutExpired:
            pass
        else:
            return None
        if time.monotonic() > end:
            return f"XProf gave no answer within {limits.seconds:g} s"
        if _rss_bytes(watched) > limits.memory_bytes:
            return f"XProf took more than {format_bytes(limits.memory_bytes)} of memory"


def _rss_bytes(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:  # it has just ended
        return 0


def _size(paths: Sequence[Path]) -> int:
    return sum(path.stat().st_size for path in paths)


def _ending(code: int) -> str:
    if code > 0:
        return f"failed (exit code {code})"
    try:
        return f"crashed ({signal.Signals(-code).name})"
    except ValueError:
        return f"crashed (signal {-code})"


def _last_words(log: Path) -> str:
    lines = log.read_bytes()[-4000:].decode("utf-8", "replace").strip().splitlines()
    return f": {lines[-1].strip().rstrip('.')}" if lines else ""


def _read_answer(document: Mapping[str, Any], seconds: float) -> XprofAnswer | Unavailable:
    analyzer, overview = (document[tool] for tool in TOOLS)
    if analyzer["answer"] is None:
        if analyzer["error"]:
            return Unavailable(f"XProf failed on this trace: {analyzer['error']}.")
        return Unavailable(
            "XProf returned nothing for this trace, without a word why; it does so for damaged and for compressed files."
        )
    table = _find_table(analyzer["answer"], "stepnum")
    steps = _read_steps(table)
    properties = table.get("p") or {}
    statements = [(one.get("p") or {}).get("statement") for one in overview["answer"] or []]
    return XprofAnswer(
        version=document["version"],
        hardware=properties.get("hardware_type", ""),
        steps=len(steps),
        step_ns=_mean_ns([step for step, _ in steps]),
        input_ns=_mean_ns([wait for _, wait in steps]),
        input_percent=_share([step for step, _ in steps], [wait for _, wait in steps]),
        verdict=properties.get("input_conclusion", ""),
        statement=next((text for text in statements if text), ""),
        warnings=_warnings(analyzer["answer"]),
        offers=tuple(document["offers"]),
        seconds=seconds,
        tool_seconds={tool: document[tool]["seconds"] for tool in TOOLS},
        peak_rss_bytes=document["peak_rss_bytes"],
    )


def _find_table(tables: Sequence[Mapping[str, Any]], column: str) -> Mapping[str, Any]:
    """Return the DataTable that has a column of that id; an empty one if none does."""
    return next((table for table in tables if column in _columns(table)), {})


def _columns(table: Mapping[str, Any]) -> list[str]:
    return [column.get("id", "") for column in table.get("cols") or []]


def _rows(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    names = _columns(table)
    values = ([(cell or {}).get("v") for cell in row.get("c") or []] for row in table.get("rows") or [])
    return [dict(zip(names, cells, strict=False)) for cells in values]


# Parts of a TPU step that the table shows, as XProf adds them up; its generic table has the total as a column.
_TPU_PARTS = (
    "tcComputeTimeMs",
    "scv0ComputeTimeMs",
    "scv0InfeedTimeMs",
    "tcInfeedTimeMs",
    "tcOutfeedTimeMs",
    "tcIdleTimeMs",
)
_TPU_INPUT = ("scv0InfeedTimeMs", "tcInfeedTimeMs")


def _read_steps(table: Mapping[str, Any]) -> list[tuple[float, float]]:
    """Return step time and input time of each step, ms."""
    generic = "stepTimeMs" in _columns(table)
    step, wait = (("stepTimeMs",), ("infeedTimeMs",)) if generic else (_TPU_PARTS, _TPU_INPUT)
    return [(_total(row, step), _total(row, wait)) for row in _rows(table)]


def _total(row: Mapping[str, Any], parts: Sequence[str]) -> float:
    return sum(float(row.get(part) or 0.0) for part in parts)


def _mean_ns(milliseconds: Sequence[float]) -> int | None:
    return round(sum(milliseconds) / len(milliseconds) * NS_PER_MS) if milliseconds else None


def _share(steps: Sequence[float], waits: Sequence[float]) -> float | None:
    return 100.0 * sum(waits) / sum(steps) if sum(steps) else None


def _warnings(tables: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    rows = _rows(_find_table(tables, "severity"))
    return tuple(str(row.get("message")) for row in rows)
