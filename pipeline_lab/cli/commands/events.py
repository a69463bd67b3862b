"""``pipeline-lab events``: every event of a trace, for pandas, DuckDB or Perfetto."""

from pathlib import Path
from typing import Annotated

import typer

from pipeline_lab.cli.arguments import StoreOption
from pipeline_lab.cli.output import reading, say


def events(
    path: Annotated[
        str,
        typer.Argument(
            help="A run (its id, its name, or `latest`), a run folder, a log directory, a trace file or an archive.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="File to write: .parquet, .json or .json.gz (Chrome).", show_default=False),
    ],
    store: StoreOption = None,
) -> None:
    """Write the events of a trace as Parquet (for pandas, DuckDB) or as Chrome JSON (for Perfetto)."""
    from pipeline_lab.runs.store import find_path
    from pipeline_lab.trace.event_files import write_events
    from pipeline_lab.trace.sources import open_traces
    from pipeline_lab.units import format_count

    found = find_path(path, store)
    with reading(found.name):
        count = write_events(open_traces(found), output)
    say("{} events in {}", format_count(count), str(output))
