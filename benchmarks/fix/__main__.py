"""Does `fix` help, and does it keep what the model sees? ``python -m benchmarks.fix --sources FOLDER --output FOLDER``.

Over the scripts of ``benchmarks.scripts``: `fix` proposes, and in a process of its own the step is timed as written, with what
was proposed, and with the best change of the input that was made by hand (``entries/*.toml``, which its truth found best).
Whether outputs are equal `fix` proves itself; that the changed script runs to its end shows when it is timed.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.scripts.entries import Entry, read_entries

HERE = Path(__file__).parent
SCRIPTS = HERE.parent / "scripts"
HELPS = 5.0
"""Percent of a step from which there is something to gain."""
OF_TRAINING = ("tf.function", "steps_per_execution", "jit_compile")
"""In the names of changes by hand that are not about the input."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fix", description=__doc__)
    parser.add_argument("--sources", type=Path, required=True, help="folder of clones")
    parser.add_argument("--output", type=Path, default=Path("/tmp/fix-benchmark"))
    parser.add_argument(
        "--only", action="append", default=[], metavar="TEXT", help="scripts whose name contains the text"
    )
    parser.add_argument("--phase", choices=("fix", "time", "print"), action="append", help="only this; all by default")
    parser.add_argument("--budget", default="150s", help="of each `fix`")
    parser.add_argument("--no-race", action="store_true", help="propose what is proved, as the times here decide")
    parser.add_argument("--again", action="store_true", help="measure also what has been measured")
    chosen = parser.parse_args()
    phases = chosen.phase or ["fix", "time", "print"]
    truths = {one["name"]: one for one in json.loads((SCRIPTS / "results.json").read_text(encoding="utf-8"))}
    entries = [entry for entry in read_entries(chosen.only) if entry.name in truths]
    for entry in entries:
        folder = chosen.output.absolute() / entry.name
        folder.mkdir(parents=True, exist_ok=True)
        for phase, ask in (("fix", _fix), ("time", _time)):
            if phase in phases and (chosen.again or not (folder / f"{phase}.json").exists()):
                print(f"… {entry.name}: {phase}", flush=True)
                ask(entry, folder, chosen, truths[entry.name])
    if "print" in phases:
        _print([(entry, truths[entry.name], chosen.output.absolute() / entry.name) for entry in entries])
    return 0


def by_hand(entry: Entry, truth: dict[str, Any]) -> tuple[str, float] | None:
    """Return the best change of the input that the truth knows, and its gain in percent; None where none helps."""
    known = {change.name for change in entry.changes}
    gains = {
        name: gain
        for name, gain in truth["gains_percent"].items()
        if gain is not None and gain >= HELPS and name in known and not any(word in name for word in OF_TRAINING)
    }
    return max(gains.items(), key=lambda one: one[1], default=None)


def _fix(entry: Entry, folder: Path, chosen: argparse.Namespace, _truth: dict[str, Any]) -> None:
    (folder / "train.py").write_text(entry.text(chosen.sources, epochs=entry.epochs[1]), encoding="utf-8")
    _run(["-m", "benchmarks.fix.timing", entry.name, "--data"], folder, "data.log")
    race = ["--no-race"] if chosen.no_race else []
    command = ["-m", "pipeline_lab", "fix", "train.py", "--budget", chosen.budget, "--json", "--store", "runs", *race]
    done = _run(command, folder, "fix.log", to=folder / "fix.json.part")
    if done:
        (folder / "fix.json").write_text(json.dumps({"failed": _last(folder / "fix.log")}), encoding="utf-8")
    else:
        shutil.move(folder / "fix.json.part", folder / "fix.json")


def _time(entry: Entry, folder: Path, chosen: argparse.Namespace, truth: dict[str, Any]) -> None:
    fix = json.loads((folder / "fix.json").read_text(encoding="utf-8")).get("fix") or {}
    best = by_hand(entry, truth)
    for path, (_, after) in (fix.get("files") or {}).items():
        if Path(path).name == "train.py":
            (folder / "fixed.py").write_text(after, encoding="utf-8")
    command = ["-m", "benchmarks.fix.timing", entry.name, "--sources", str(chosen.sources.absolute())]
    command += ["--fixed"] if fix.get("changes") else []
    command += ["--change", best[0]] if best else []
    _run(command, folder, "time.log")


def _run(command: list[str], folder: Path, log: str, to: Path | None = None) -> int:
    site = folder.parent / "site-packages"
    site.mkdir(exist_ok=True)
    shutil.copy(SCRIPTS / "stand_ins.py", site)
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join((str(site), str(HERE.parents[1]))),
        "PIPELINE_LAB_CACHE": str(folder.parent / "cache"),
        "TF_CPP_MIN_LOG_LEVEL": "2",
    }
    with (folder / log).open("w", encoding="utf-8") as said, (to or folder / f"{log}.out").open("w") as out:
        done = subprocess.run(
            [sys.executable, *command], cwd=folder, env=environment, stdout=out, stderr=said, check=False
        )
    return done.returncode


def _last(log: Path) -> str:
    return (log.read_text(encoding="utf-8", errors="replace").strip().splitlines() or [""])[-1][:300]


def _print(rows: list[tuple[Entry, dict[str, Any], Path]]) -> None:
    """Print a row for each script that was measured."""
    print("| script | by hand (truth) | proposed | proof | race | ms as written | fixed | by hand | fixed / by hand |")
    print("|---|---|---|---|---|---|---|---|---|")
    for entry, truth, folder in rows:
        if not (folder / "fix.json").exists():
            continue
        document = json.loads((folder / "fix.json").read_text(encoding="utf-8"))
        fix = document.get("fix") or {}
        times = json.loads((folder / "time.json").read_text()) if (folder / "time.json").exists() else {}
        best = by_hand(entry, truth)
        cells = [
            entry.name,
            "nothing" if best is None else f"{best[0]}: {best[1]:.0f} %",
            ", ".join(each["rewrite"] for each in fix.get("changes", ())) or document.get("failed") or "nothing",
            (fix.get("proof") or {}).get("outcome", "–"),
            _raced(document),
            *(_ms(times.get(name)) for name in ("as written", "fixed", "by hand")),
            _ratio(times.get("fixed") or times.get("as written"), times.get("by hand")),
        ]
        print(f"| {' | '.join(cells)} |")


def _raced(document: dict[str, Any]) -> str:
    met = (document.get("challenger") or {}).get("met")
    if not met or met["low"] is None or met["high"] is None:
        return "–" if not met else f"{met['ratio']:.3f}, too few rounds"
    return f"{met['ratio']:.3f} ({met['low']:.3f}–{met['high']:.3f})"


def _ms(times: list[float] | None) -> str:
    return "–" if not times else f"{min(times):.2f}"


def _ratio(fixed: list[float] | None, best: list[float] | None) -> str:
    return "–" if not fixed or not best else f"{min(fixed) / min(best):.2f}"


if __name__ == "__main__":
    sys.exit(main())
