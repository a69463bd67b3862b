"""Time a script as written, with what `fix` proposed, and with changes by hand: ``python -m benchmarks.fix.timing NAME``.

All in one process and in turn, in the script's folder, where ``fixed.py`` is the changed script.
"""

import argparse
import json
import traceback
from pathlib import Path

from benchmarks.scripts.entries import read_entries
from benchmarks.scripts.truth import run_text, write_data

TURNS = 3


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fix.timing", description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--sources", type=Path)
    parser.add_argument("--data", action="store_true", help="only write the data")
    parser.add_argument("--fixed", action="store_true", help="also time fixed.py")
    parser.add_argument("--change", action="append", default=[], help="also time this change by hand")
    chosen = parser.parse_args()
    entry = next(one for one in read_entries([chosen.name]) if one.name == chosen.name)
    write_data(entry)
    if chosen.data:
        return
    from benchmarks.scripts import meter as meters

    texts = {"as written": entry.text(chosen.sources, epochs=entry.epochs[1])}
    if chosen.fixed:
        texts["fixed"] = Path("fixed.py").read_text(encoding="utf-8")
    for change in entry.changes:
        if change.name in chosen.change:
            texts[change.name] = entry.text(chosen.sources, change, epochs=entry.epochs[1])
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in texts}
    """Of each form and turn, the time of a step and what of it giving up iterators took, ms."""
    for _ in range(TURNS):
        for name, text in texts.items():
            try:
                meter = run_text(entry, text, name.replace("/", " "))
            except Exception:  # a form that fails has no times
                traceback.print_exc()
                continue
            step_ms = meters.step_ms(meter.passes)
            times[name] += [] if step_ms is None else [(step_ms, meters.ends_ms(meter))]
            Path("time.json.part").write_text(json.dumps(times), encoding="utf-8")
    Path("time.json.part").rename("time.json")


if __name__ == "__main__":
    main()
