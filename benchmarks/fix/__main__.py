"""Does `fix` help, and does it keep what the model sees? ``python -m benchmarks.fix --sources FOLDER --output FOLDER``.

Over the scripts of ``benchmarks.scripts``: `fix` proposes, and in a process of its own the step is timed as written, with what
was proposed, and with the changes of the input by hand (``entries/*.toml``) that do to the examples what `fix` may do to them.
Ends of iterators are left out of these times: they sleep by chance, in one turn and not in the next.
Whether outputs are equal `fix` proves itself; that the changed script runs to its end shows when it is timed. What has been
measured is kept: begun again, it goes on.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.scripts.entries import Change, Entry, read_entries

HERE = Path(__file__).parent
SCRIPTS = HERE.parent / "scripts"
HELPS = 5.0
"""Percent of a step from which there is something to gain."""
ENOUGH = 1.10
"""Times the step by hand that the proposal may take."""
OF_TRAINING = ("tf-function", "fewer-calls", "xla", "callbacks")
"""Kinds of changes by hand that are not about the input."""
MOST_BY_HAND = 3
EQUAL = ("equal", "equal but for rounding", "equal once random draws are fixed")


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
    parser.add_argument(
        "--may-reorder", action="store_true", help="`fix`, and who does it by hand, may change the order"
    )
    parser.add_argument("--again", action="store_true", help="measure also what has been measured")
    chosen = parser.parse_args()
    phases = chosen.phase or ["fix", "time", "print"]
    truths = {one["name"]: one for one in json.loads((SCRIPTS / "results.json").read_text(encoding="utf-8"))}
    rows = []
    for entry in read_entries(chosen.only):
        folder = chosen.output.absolute() / entry.name
        rows.append((entry, folder))
        for phase, ask in (("fix", _fix), ("time", _time)):
            if phase in phases and (chosen.again or not (folder / f"{phase}.json").exists()):
                print(f"… {entry.name}: {phase}", flush=True)
                ask(entry, folder, chosen, truths.get(entry.name))
    if "print" in phases:
        print_rows(rows)
    return 0


def by_hand(entry: Entry, truth: dict[str, Any] | None, *, may_reorder: bool) -> list[Change]:
    """Return the changes of the input that may be made by hand and that help as far as the truth is known, the best first."""
    gains = {} if truth is None else truth["gains_percent"]
    allowed = ("nothing", "order") if may_reorder else ("nothing",)
    found = [change for change in entry.changes if change.effect in allowed and change.kind not in OF_TRAINING]
    helpful = [change for change in found if truth is None or (gains.get(change.name) or 0.0) >= HELPS]
    return sorted(helpful, key=lambda one: -(gains.get(one.name) or 0.0))[:MOST_BY_HAND]


def _fix(entry: Entry, folder: Path, chosen: argparse.Namespace, _truth: dict[str, Any] | None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train.py").write_text(entry.text(chosen.sources, epochs=entry.epochs[1]), encoding="utf-8")
    _run(["-m", "benchmarks.fix.timing", entry.name, "--data"], folder, "data.log")
    command = ["-m", "pipeline_lab", "fix", "train.py", "--budget", chosen.budget, "--json", "--store", "runs"]
    command += ["--no-race"] if chosen.no_race else []
    command += ["--may-reorder"] if chosen.may_reorder else []
    done = _run(command, folder, "fix.log", to=folder / "fix.json.part")
    if done:
        (folder / "fix.json").write_text(json.dumps({"failed": _last(folder / "fix.log")}), encoding="utf-8")
    else:
        shutil.move(folder / "fix.json.part", folder / "fix.json")


def _time(entry: Entry, folder: Path, chosen: argparse.Namespace, truth: dict[str, Any] | None) -> None:
    if not (folder / "fix.json").exists():
        print(f"  {entry.name} has not been fixed yet.")
        return
    fix = json.loads((folder / "fix.json").read_text(encoding="utf-8")).get("fix") or {}
    for path, (_, after) in (fix.get("files") or {}).items():
        if Path(path).name == "train.py":
            (folder / "fixed.py").write_text(after, encoding="utf-8")
    command = ["-m", "benchmarks.fix.timing", entry.name, "--sources", str(chosen.sources.absolute())]
    command += ["--fixed"] if fix.get("changes") else []
    for change in by_hand(entry, truth, may_reorder=chosen.may_reorder):
        command += ["--change", change.name]
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


def print_rows(rows: list[tuple[Entry, Path]]) -> None:
    """Print a row for each script that was measured, and what the issue of all of them is."""
    print("| script | proposed | proof | race | ms as written | fixed | by hand | best by hand | fixed / by hand |")
    print("|---|---|---|---|---|---|---|---|---|")
    gaining, valid, near, altered, needless = [], [], [], [], []
    for entry, folder in rows:
        if not (folder / "fix.json").exists():
            continue
        document = json.loads((folder / "fix.json").read_text(encoding="utf-8"))
        fix = document.get("fix") or {}
        times = json.loads((folder / "time.json").read_text()) if (folder / "time.json").exists() else {}
        written, fixed = _ms(times.get("as written")), _ms(times.get("fixed"))
        hands = {name: ms for name, took in times.items() if name not in ("as written", "fixed") and (ms := _ms(took))}
        best = min(hands, key=lambda name: hands[name], default=None)
        helps = best is not None and written is not None and hands[best] <= (1 - HELPS / 100) * written
        proof = (fix.get("proof") or {}).get("outcome", "–")
        then = fixed if fix.get("changes") else written  # a changed script that fails has no time
        cells = [
            entry.name,
            ", ".join(each["rewrite"] for each in fix.get("changes", ())) or document.get("failed") or "nothing",
            proof,
            _raced(document),
            *("–" if each is None else f"{each:.2f}" for each in (written, fixed)),
            "–" if best is None else f"{hands[best]:.2f}",
            best if helps else "nothing helps",
            "–" if not helps or then is None else f"{then / hands[best]:.2f}",
        ]
        print(f"| {' | '.join(map(str, cells))} |")
        altered += [entry.name] if fix.get("changes") and proof not in EQUAL else []
        needless += [entry.name] if fixed and written and fixed > ENOUGH * written else []
        if helps:
            gaining.append(entry.name)
            valid += [entry.name] if fixed and proof in EQUAL else []
            near += [entry.name] if then is not None and then <= ENOUGH * hands[best] else []
    print(
        f"\nwith something to gain: {len(gaining)}; of those valid diffs {len(valid)}, within 10 % of by hand {len(near)}"
    )
    print(f"not proved equal: {', '.join(altered) or 'none'}; slower than before: {', '.join(needless) or 'none'}")


def _raced(document: dict[str, Any]) -> str:
    met = (document.get("challenger") or {}).get("met")
    if not met or met["low"] is None or met["high"] is None:
        return "–" if not met else f"{met['ratio']:.3f}, too few rounds"
    return f"{met['ratio']:.3f} ({met['low']:.3f}–{met['high']:.3f})"


def _ms(times: list[tuple[float, float]] | None) -> float | None:
    """Return the least time of a step apart from ends of iterators, which sleep by chance."""
    return min(step_ms - ends_ms for step_ms, ends_ms in times) if times else None


if __name__ == "__main__":
    sys.exit(main())
