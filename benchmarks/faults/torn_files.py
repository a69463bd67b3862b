"""Files of a finished run that were cut."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.faults.case import SAMPLE, Case
from benchmarks.impossible import find_impossible
from pipeline_lab.runs.run_tables import RUN_TABLES


def tear(folder: Path) -> Iterator[tuple[str, str]]:
    """Cut each file of a finished run to its half and to nothing; yield which, and what is wrong with what is said then."""
    names = ["run.json", "files.json", "events.jsonl", *[table.file_name for table in RUN_TABLES]]
    for name in [*names, "window"]:
        for share in (0.5, 0.0):
            case = Case(Path(tempfile.mkdtemp(dir=folder)))
            copied = Path(shutil.copytree(SAMPLE, case.store / "20260101-000000-torn-0000"))
            shutil.rmtree(copied / "analysis")
            torn = next(copied.rglob("*.xplane.pb*"), None) if name == "window" else copied / name
            if torn is None or not torn.is_file():
                continue
            torn.write_bytes(torn.read_bytes()[: int(torn.stat().st_size * share)])
            whole = json.loads(case.call("analyze", str(copied), "--json") or "{}")
            case.call("runs", "list")
            problems = list(find_impossible(whole))
            problems += ["a traceback"] if any("Traceback (most recent" in text for text in case.outputs) else []
            said = (
                [whole["source"]["damaged_tables"], whole["source"]["salvaged"], whole["source"]["unreadable"]]
                if whole
                else []
            )
            problems += ["nothing is said of it"] if whole and not any(said) and share else []
            yield f"{name} cut to {share:.0%}", "; ".join(problems)
