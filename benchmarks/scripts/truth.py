"""Measure the truth about one script: ``python -m benchmarks.scripts.truth NAME --sources FOLDER``, in its work folder.

In one process: input alone; then, in turns, end to end with each candidate change, without any, and compute alone.
"""

import argparse
import contextlib
import gc
import importlib
import io
import json
import random
import sys
import time
import traceback
import types
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.scripts.entries import Change, Entry, read_entries

ROUNDS = 2
"""How often each change is measured, each time followed by the script as written and its step alone: a machine's hours differ, and
later runs of a process are slower than its first."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scripts.truth", description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--sources", type=Path, required=True)
    parser.add_argument("--change", action="append", default=None, help="only these changes")
    chosen = parser.parse_args()
    entry = next(one for one in read_entries([chosen.name]) if one.name == chosen.name)
    write_data(entry)
    truth = measure(entry, chosen.sources, chosen.change)
    Path("truth.json").write_text(json.dumps(truth, indent=1), encoding="utf-8")


def write_data(entry: Entry) -> None:
    """Write the files of a script, once."""
    done = Path("data.json")
    if done.exists() and json.loads(done.read_text()) == list(entry.data):
        return
    stand_ins = importlib.import_module("stand_ins")  # beside the script

    for call in entry.data:
        eval(f"stand_ins.{call}", {"stand_ins": stand_ins})
    done.write_text(json.dumps(entry.data))


def measure(entry: Entry, sources: Path, only: list[str] | None = None) -> dict[str, Any]:
    """Return all times of a script, ms."""
    from benchmarks.scripts import meter as meters

    first = _run(entry, sources, None)
    if first.model is None and first.dataset is None:
        raise SystemExit(f"{entry.name}: nothing trained at {entry.loop!r}")
    steps = sum(len(one.arrived_s) for one in first.passes)
    a_pass = max(1, steps // len(first.passes))
    input_ms, input_passes = meters.time_input(first.dataset, len(first.passes))
    step_ms = meters.step_ms(first.passes)
    truth: dict[str, Any] = {
        "steps": steps,
        "passes": len(first.passes),
        "compute_ms": [],
        "input_ms": input_ms,
        "input_passes_ms": input_passes[:6],
        "wait_ms": meters.wait_ms(first.passes),
        "ends_ms": [meters.ends_ms(first)],
        "as_written_ms": [],  # without the first run of the process, which may be slower
        "changes_ms": {},
        "change_ends_ms": {},
    }
    first.dataset = first.model = None
    wanted = [change for change in entry.changes if only is None or change.name in only]
    for _ in range(ROUNDS):
        for change in wanted:
            _measure_change(entry, sources, change, a_pass, truth)
        again = _run(entry, sources, None)
        truth["as_written_ms"].append(meters.step_ms(again.passes))
        truth["ends_ms"].append(meters.ends_ms(again))
        if entry.loop == "fit":
            many = max(6, min(a_pass, round(meters.ALONE_S / 2 / max(1e-3, (step_ms or 1.0) / 1e3))))
            truth["compute_ms"].append(meters.time_held_fit(again, many, type(again.model).fit))
        else:
            truth["compute_ms"].append(meters.step_ms(_run(entry, sources, None, hold=a_pass).passes))
    return truth


def _measure_change(entry: Entry, sources: Path, change: Change, a_pass: int, truth: dict[str, Any]) -> None:
    from benchmarks.scripts import meter as meters

    most = a_pass if change.kind == "fewer-calls" else None
    try:
        changed = _run(entry, sources, change)
    except Exception as error:  # a change that cannot be made is reported, and is not the best one
        traceback.print_exc()
        truth.setdefault("failed", {})[change.name] = f"{type(error).__name__}: {error}"[:300]
    else:
        truth["changes_ms"].setdefault(change.name, []).append(meters.step_ms(changed.passes, most))
        truth["change_ends_ms"].setdefault(change.name, []).append(meters.ends_ms(changed, most))


def _run(entry: Entry, sources: Path, change: Change | None, hold: int = 0) -> Any:
    """Run the script once in this process; return what was metered."""
    text = entry.text(sources, change, epochs=entry.epochs[0])
    label = "held" if hold else "as written" if change is None else change.name
    return run_text(entry, text, label, hold)


def run_text(entry: Entry, text: str, label: str, hold: int = 0) -> Any:
    """Run a form of the script once in this process; return what was metered.

    Args:
        entry: Which script.
        text: Its form.
        label: What that is called.
        hold: Steps of an epoch that all take the first batch; 0 to train on what comes.
    """
    import keras
    import tensorflow as tf

    from benchmarks.scripts import meter as meters

    keras.backend.clear_session()
    gc.collect()
    random.seed(1)
    np.random.seed(1)
    tf.random.set_seed(1)
    path = Path(f"{label.replace(' ', '_')}_run.py").absolute()
    path.write_text(text, encoding="utf-8")
    meter = meters.Meter(str(path), entry.loop, hold=bool(hold), steps=hold)
    module = types.ModuleType("__main__")
    module.__file__ = str(path)
    before, argv = sys.modules["__main__"], sys.argv
    sys.modules["__main__"], sys.argv = module, [str(path)]
    said, begun_s = io.StringIO(), time.perf_counter()
    try:
        with meters.measuring(meter), contextlib.redirect_stdout(said):
            exec(compile(text, str(path), "exec"), module.__dict__)
    except BaseException:
        print(said.getvalue()[-2000:], file=sys.stderr)
        raise
    finally:
        sys.modules["__main__"], sys.argv = before, argv
    found = meters.step_ms(meter.passes)
    shown = "–" if found is None else f"{found:.2f} ms"
    print(f"{time.perf_counter() - begun_s:6.1f} s  {entry.name}: {label}: {shown}", file=sys.stderr, flush=True)
    return meter


if __name__ == "__main__":
    main()
