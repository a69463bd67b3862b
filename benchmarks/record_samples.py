"""Record and diagnose the two sample runs that come with the project: `python -m benchmarks.record_samples`.

With ``--diagnose`` the recorded ones are only diagnosed again, as after a change of the analysis.
They are ordinary runs of the presets, kept whole but for what belongs to the machine alone: its host name, folders
and process ids.
"""

import json
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from pipeline_lab.analysis.diagnosis.diagnose import diagnose
from pipeline_lab.analysis.diagnosis.saved import bundle
from pipeline_lab.options.presets import find_preset
from pipeline_lab.options.run_options import RunOptions, set_option
from pipeline_lab.runs.launch.launcher import launch, wait
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.store import RunFolder, RunStore, update_record
from pipeline_lab.units import format_bytes

SAMPLES = Path(__file__).resolve().parents[1] / "profiles" / "samples"
PRESETS = ("baseline", "optimised")
SETTINGS = {"training.steps": "200", "profiling.steps_per_window": "3", "profiling.every_steps": "100"}
BUDGET_BYTES = 5_000_000
HOST = "sample-host"


def main() -> int:
    if sys.argv[1:] != ["--diagnose"]:
        _record_all()
    for folder in sorted(SAMPLES.glob("sample-*")):
        bundle(diagnose(folder), folder)
    size = sum(file.stat().st_size for file in SAMPLES.rglob("*") if file.is_file())
    print(f"{size / 1e6:.2f} MB in {SAMPLES}")
    if size > BUDGET_BYTES:
        print(f"That is more than {format_bytes(BUDGET_BYTES)}; record fewer or shorter windows.")
        return 1
    return 0


def _record_all() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folders = [_record(RunStore(Path(scratch)), preset) for preset in PRESETS]
        for preset, folder in zip(PRESETS, folders, strict=True):
            _keep(folder, SAMPLES / f"sample-{preset}")


def _record(store: RunStore, preset: str) -> RunFolder:
    options: RunOptions = find_preset(preset).options
    for path, value in SETTINGS.items():
        options = set_option(options, path, value)
    folder = launch(store, options)
    status = wait(folder).status
    if status.state is not RunState.DONE:
        raise SystemExit(f"{preset}: {status.state}: {status.reason}")
    return folder


def _keep(folder: RunFolder, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    skipped = shutil.ignore_patterns(".*", "analysis", "worker.log", "cancel", "__pycache__")
    shutil.copytree(folder.path, target, ignore=skipped)
    kept = RunFolder(target)
    _rename_hosts(kept)
    _shorten_paths(kept)
    record = update_record(
        kept,
        lambda record: replace(
            record,
            id=target.name,
            environment={**record.environment, "host": HOST, "platform": "Linux"},
            status=replace(record.status, supervisor=None),
        ),
    )
    kept.lock.unlink(missing_ok=True)
    print(f"{target.name}: {json.dumps(record.environment)}")


def _rename_hosts(folder: RunFolder) -> None:
    for window in folder.windows():
        for trace in window.glob("*.xplane.pb"):
            trace.rename(window / f"{HOST}.xplane.pb")


def _shorten_paths(folder: RunFolder) -> None:
    document = json.loads(folder.files.read_text())
    for file in document["files"]:
        file["path"] = Path(file["path"]).name
    folder.files.write_text(json.dumps(document, indent=1))


if __name__ == "__main__":
    sys.exit(main())
