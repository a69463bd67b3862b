"""Stands in for the worker of a search: every race ends as the true step times of :mod:`tests.support.true_times` say.

``PLANTED_SECONDS`` is how long each trial takes; ``PLANTED_GATES`` is a folder in which a trial waits for a file of its kind,
``run`` or ``race``. A run leaves nothing but its end, so a model has nothing to go by; nor does
it load what only races need, which takes most of a second.
"""

import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline_lab.runs.record import RunKind, RunRecord, RunState
from pipeline_lab.runs.run_folder import RunFolder, read_record, update_record

if TYPE_CHECKING:
    from pipeline_lab.options.run_options import RunOptions


def main() -> None:
    folder = RunFolder(Path(sys.argv[1]))
    update_record(folder, lambda found: replace(found, status=found.status.change(RunState.RUNNING)))
    time.sleep(float(os.environ.get("PLANTED_SECONDS", "0")))
    record = read_record(folder)
    if gates := os.environ.get("PLANTED_GATES"):
        while not Path(gates, record.kind.value).exists():
            time.sleep(0.05)
    if record.kind is RunKind.RACE:
        _race(folder, record)


def _race(folder: RunFolder, record: RunRecord) -> None:
    from pipeline_lab.options.race_options import read_race_options
    from tests.support.races import fill_race
    from tests.support.true_times import planted

    race = read_race_options(record.options or {})
    arms = (planted(_step_ms(arm), arm.name, race.pairs) for arm in race.arms)
    fill_race(folder, *arms, block_steps=race.block_steps)


def _step_ms(options: "RunOptions") -> float:
    """Return the true step time; of a pipeline without a map only whether it prefetches counts."""
    from tests.support.true_times import true_ms

    if options.pipeline.find("map") is not None:
        return true_ms(options)
    return 20.0 if options.pipeline.find("prefetch") is None else 12.0


if __name__ == "__main__":
    main()
