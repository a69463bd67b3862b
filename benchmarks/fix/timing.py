"""Time a script as written, with what `fix` proposed, and with a change by hand: ``python -m benchmarks.fix.timing NAME``.

All in one process and in turn, in the script's folder, where ``fixed.py`` is the changed script.
"""

import argparse
import json
from pathlib import Path

from benchmarks.scripts.entries import read_entries
from benchmarks.scripts.truth import run_text, write_data

TURNS = 2


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fix.timing", description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--sources", type=Path)
    parser.add_argument("--data", action="store_true", help="only write the data")
    parser.add_argument("--fixed", action="store_true", help="also time fixed.py")
    parser.add_argument("--change", help="also time this change by hand")
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
        if change.name == chosen.change:
            texts["by hand"] = entry.text(chosen.sources, change, epochs=entry.epochs[1])
    times: dict[str, list[float]] = {name: [] for name in texts}
    for _ in range(TURNS):
        for name, text in texts.items():
            step_ms = meters.step_ms(run_text(entry, text, name).passes)
            times[name] += [] if step_ms is None else [step_ms]
            Path("time.json").write_text(json.dumps(times), encoding="utf-8")


if __name__ == "__main__":
    main()
