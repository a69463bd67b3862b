"""What `fix` finds in a script whose data are read in the process that has TensorFlow loaded."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from pipeline_lab.errors import Unavailable
from pipeline_lab.pipeline.samples import ProofOutcome
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.tuning.script.fix import Fix
from pipeline_lab.tuning.script.fixing import Wishes, find_fix
from pipeline_lab.tuning.script.sample_process import SampleProcess, Script
from tests.worker.recipe.trap_scripts import SCRIPTS

FixScript: TypeAlias = Callable[..., Fix]


def read_in_warm_process(ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Read scripts in the process that has TensorFlow loaded, instead of in one of the prover's own."""
    task = "tests.worker.recipe.trap_tasks:read_script"
    monkeypatch.setattr(SampleProcess, "ask", lambda _self, request: ask(task, **request))


def fixing_in(folder: Path, ask: Callable[..., Any]) -> FixScript:
    """Return what fixes one of the scripts, or a given source, in a folder."""

    def find(name: str, *changes: str, may_reorder: bool = False, source: str = "") -> Fix:
        path = folder / "train.py"
        path.write_text(source or SCRIPTS[name])
        run = RunFolder(folder)
        recipe = json.loads(ask("tests.worker.recipe.trap_tasks:recipe_of_script", path=str(path)))
        run.recipe.write_text(json.dumps({**recipe, "files": {str(path): "0-train.py"}}))
        run.sources.mkdir(exist_ok=True)
        (run.sources / "0-train.py").write_text(path.read_text())
        return find_fix(run, Script(str(path)), Wishes(changes, may_reorder), Unavailable("Not analyzed."))

    return find


def proposed(found: Fix) -> list[str]:
    assert not found.changes or (found.proof and found.proof.outcome in (ProofOutcome.EQUAL, ProofOutcome.REDRAWN)), (
        found
    )
    return [change.rewrite for change in found.changes]


def left(found: Fix) -> dict[str, str]:
    return {each.change.rewrite: each.reason for each in found.left}
