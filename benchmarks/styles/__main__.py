"""How training styles of today's TensorFlow are read, by us and by XProf: ``python -m benchmarks.styles``.

Each style is recorded in a process of its own, then both read the same file. ``--keep FOLDER`` keeps the captures and
what is true of them, which is how ``tests/data/styles`` was made; ``--read FOLDER`` reads kept ones again.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.styles import STYLES
from pipeline_lab.analysis.diagnosis.diagnose import diagnose
from pipeline_lab.analysis.xprof.xprof import ask_xprof
from pipeline_lab.errors import Unavailable
from pipeline_lab.units import NS_PER_MS

TRUTH = "truth.json"
TIMEOUT_S = 180
COLUMNS = ("style", "steps taken", "we found", "marker", "our wait", "XProf found", "its wait", "XProf says")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.styles", description=__doc__)
    parser.add_argument("styles", nargs="*", default=STYLES, help=", ".join(STYLES))
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    parser.add_argument("--read", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.read or arguments.keep or Path(scratch)
        if not arguments.read:
            record(arguments.styles, folder)
        print_table(folder)


def record(styles: Sequence[str], folder: Path) -> None:
    """Record styles into a folder, beside what it holds already."""
    folder.mkdir(parents=True, exist_ok=True)
    for style in styles:
        true = _record(style, folder)
        truth = _read_truth(folder) | {style: true}
        ordered = {style: truth[style] for style in STYLES if style in truth}
        (folder / TRUTH).write_text(json.dumps(ordered, indent=1) + "\n")


def _read_truth(folder: Path) -> dict[str, Any]:
    file = folder / TRUTH
    return json.loads(file.read_text()) if file.exists() else {}


def _record(style: str, folder: Path) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as log:
        command = [sys.executable, "-m", "benchmarks.styles.record", style, log]
        output = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
        if output.returncode != 0:
            raise SystemExit(f"{style} could not be recorded:\n{output.stderr[-2000:]}")
        truth: dict[str, Any] = json.loads(output.stdout.splitlines()[-1])
        shutil.copyfile(truth.pop("capture"), folder / f"{style}.xplane.pb")
    return truth


def print_table(folder: Path) -> None:
    print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS))
    for style, true in _read_truth(folder).items():
        print(
            "| "
            + " | ".join(
                (
                    style,
                    _product(true["steps"] // true["steps_per_execution"], true["steps_per_execution"]),
                    *_read(folder, style),
                )
            )
            + " |"
        )


def _read(folder: Path, style: str) -> tuple[str, ...]:
    path = folder / f"{style}.xplane.pb"
    return (*_ours(path), *_xprofs(path))


def _ours(path: Path) -> tuple[str, ...]:
    diagnosis = diagnose(path)
    steps, stalls = diagnosis.steps, diagnosis.input_stalls
    if isinstance(steps, Unavailable):
        return "none", steps.reason, "-"
    wait = "-" if isinstance(stalls, Unavailable) else f"{stalls.wait_ns / steps.count / NS_PER_MS:.1f} ms"
    return _product(steps.count, steps.steps_per_marker or 1), steps.marker, wait


def _product(executions: int, steps_each: float) -> str:
    return f"{executions} × {steps_each:g}" if steps_each != 1 else str(executions)


def _xprofs(path: Path) -> tuple[str, ...]:
    answer = ask_xprof([path])
    if isinstance(answer, Unavailable):
        return "none", "-", answer.reason
    wait = "-" if answer.input_ns is None else f"{answer.input_ns / NS_PER_MS:.1f} ms"
    return str(answer.steps), wait, " ".join(_first_sentence(text) for text in (answer.verdict, *answer.warnings))


def _first_sentence(text: str) -> str:
    return text.split(". ")[0].rstrip(".") + "."


if __name__ == "__main__":
    main()
