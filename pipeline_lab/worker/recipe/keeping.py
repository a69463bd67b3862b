"""Writes the recipe into the run folder, beside copies of the user's files that it speaks of."""

import contextlib
from dataclasses import replace
from pathlib import PurePath

from pipeline_lab.runs.run_folder import RunFolder, write_whole
from pipeline_lab.worker.recipe.notes import Ledger, files_of

MAX_FILES, MAX_FILE_BYTES = 30, 400_000
"""Copies that a run keeps at most, and of what size each."""


class KeptRecipe:
    """Keeps ``recipe.json`` of a run as the ledger has it.

    Args:
        folder: Of the run, or of this process's part of it.
        ledger: What is noted.
    """

    def __init__(self, folder: RunFolder, ledger: Ledger) -> None:
        self._folder, self._ledger = folder, ledger
        self._written = 0

    def write(self, *, is_last: bool = False) -> None:
        """Write it, if it has grown; a full disk or an odd source must not affect the job.

        Args:
            is_last: The job is over: write what datasets that are made again and again were in the end.
        """
        version = self._ledger.version
        if version == (0 if is_last else self._written):
            return
        self._written = version
        with contextlib.suppress(Exception):
            recipe = self._ledger.recipe()
            names = self._copy_files(dict(files_of(recipe)))
            write_whole(self._folder.recipe, replace(recipe, files=names).to_json())

    def _copy_files(self, texts: dict[str, str]) -> dict[str, str]:
        names: dict[str, str] = {}
        for number, (file, text) in enumerate(list(texts.items())[:MAX_FILES]):
            content = text.encode(errors="replace")
            if len(content) <= MAX_FILE_BYTES:
                self._folder.sources.mkdir(exist_ok=True)
                names[file] = f"{number}-{PurePath(file).name}"
                (self._folder.sources / names[file]).write_bytes(content)
        return names
