"""``pipeline-lab presets``: named options, bundled and saved."""

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from pipeline_lab.cli.arguments import JsonOption, StoreOption
from pipeline_lab.cli.output import print_json, results, say
from pipeline_lab.errors import OptionsError


def presets(
    save: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="NAME OPTIONS", help="Save a JSON file's or a run's options under a name.", show_default=False
        ),
    ] = None,
    remove: Annotated[
        str | None, typer.Option(metavar="NAME", help="Delete a saved preset.", show_default=False)
    ] = None,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """List the presets and the question that each one answers; save or delete presets of your own."""
    from pipeline_lab.runs.saved_presets import preset_groups, remove_preset, save_preset
    from pipeline_lab.runs.store import open_store

    if save is not None and remove is not None:
        raise OptionsError("--save and --remove exclude each other; give them in two commands.")
    runs = open_store(store)
    if save is not None:
        from pipeline_lab.comparison.racing import find_arm

        save_preset(runs, save[0], find_arm(save[1], runs))
        say("Saved as preset [bold]{}[/].", save[0])
        return
    if remove is not None:
        remove_preset(runs, remove)
        say("Deleted preset [bold]{}[/].", remove)
        return
    groups = preset_groups(runs)
    if as_json:
        print_json(
            [
                {"name": preset.name, "group": group.title, "question": preset.question}
                for group in groups
                for preset in group.presets
            ]
        )
        return
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for group in groups:
        table.add_row(Text(group.title, style="bold underline"), Text(group.question, style="italic"))
        for preset in group.presets:
            table.add_row(Text(preset.name, style="bold"), preset.headline)
        table.add_row()
    results().print(table)
    say("Run one: [bold]pipeline-lab run --preset NAME[/]. Show its options: [bold]pipeline-lab options NAME[/].")
