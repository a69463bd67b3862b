"""``pipeline-lab presets``: named option sets."""

from rich.table import Table

from pipeline_lab.cli.arguments import JsonOption
from pipeline_lab.cli.output import print_json, results


def presets(as_json: JsonOption = False) -> None:
    """List the presets and the question that each one answers."""
    from pipeline_lab.options.presets import PRESETS

    if as_json:
        print_json([{"name": preset.name, "question": preset.question} for preset in PRESETS])
        return
    table = Table("Preset", "What it shows", box=None, padding=(0, 2, 1, 0))
    for preset in PRESETS:
        table.add_row(f"[bold]{preset.name}[/]", preset.question)
    results().print(table)
