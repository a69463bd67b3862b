"""``pipeline-lab code``: the pipeline as Python source."""

from pathlib import Path
from typing import Annotated

import typer

from pipeline_lab.cli.arguments import StoreOption
from pipeline_lab.errors import StoreError


def code(
    what: Annotated[
        str,
        typer.Argument(metavar="RUN|FILE", help="A run's id, an options file, or a preset's name.", show_default=False),
    ],
    store: StoreOption = None,
) -> None:
    """Print the input pipeline as Python source, ready to paste; it needs nothing but TensorFlow."""
    typer.echo(_source(what, store), nl=False)


def _source(what: str, store: Path | None) -> str:
    from pipeline_lab.options.run_options import read_options_file
    from pipeline_lab.pipeline.source import render_source
    from pipeline_lab.runs.saved_presets import all_presets
    from pipeline_lab.runs.store import find_store

    if Path(what).is_file():
        return render_source(read_options_file(Path(what)))
    preset = next((preset for preset in all_presets(find_store(store)) if preset.name == what), None)
    if preset is not None:
        return render_source(preset.options)
    opened = find_store(store)
    folder = opened.folder(opened.find_id(what))
    try:
        return folder.source.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise StoreError(f"{folder.source.name} of run {what} is damaged: it is not UTF-8 text.") from None
    except OSError:
        raise StoreError(f"Run {what} has no pipeline source; it was not launched from options.") from None
