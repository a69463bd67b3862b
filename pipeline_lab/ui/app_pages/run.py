"""One run, race or search, seen as its kind asks for. The link says which."""

from pipeline_lab.runs.record import RunKind
from pipeline_lab.ui import cache, header, keeping, race_view, run_view, tune_view

VIEWS = {
    RunKind.LOG: run_view.show,
    RunKind.RUN: run_view.show,
    RunKind.RACE: race_view.show,
    RunKind.TUNE: tune_view.show,
}

store = cache.store()
record = header.chosen_run(store)
folder = store.folder(record.id)
header.show(store, record)
keeping.show(store, folder)
VIEWS[record.kind](store, record, folder)
