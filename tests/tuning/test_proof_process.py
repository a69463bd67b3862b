"""The process that reads a script's data for a proof, as it is started for users."""

from pathlib import Path

import pytest

from pipeline_lab.pipeline.recipe import LOOP
from pipeline_lab.pipeline.samples import ReadingPlace
from pipeline_lab.tuning.script.proof import Prover
from pipeline_lab.tuning.script.sample_process import Script
from tests.worker.recipe.trap_scripts import SCRIPTS


@pytest.mark.tensorflow
@pytest.mark.slow
def test_a_proof_leaves_nothing_of_what_autograph_wrote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script, temporary = tmp_path / "train.py", tmp_path / "temporary"
    script.write_text(SCRIPTS["branches"])
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    reading = ReadingPlace(LOOP, str(script), SCRIPTS["branches"].splitlines().index("    for batch in ds:") + 1)
    with Prover(Script(str(script)), reading, "as-it-is") as prover:
        assert prover.is_repeatable()
    assert list(temporary.iterdir()) == []
