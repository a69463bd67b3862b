"""Notes the recipe of every dataset that the user's job makes and reads."""

from typing import Any

from pipeline_lab.capture.script.live_iterators import listeners
from pipeline_lab.worker.recipe.wrapping import note_datasets, note_use


def note_new_datasets() -> None:
    """Begin with it; a second call does nothing."""
    note_datasets()
    if _note not in listeners:
        listeners.append(_note)


def _note(_iterator: Any, dataset: Any) -> None:
    note_use(dataset)
