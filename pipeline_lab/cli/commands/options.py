"""``pipeline-lab options``: what can be chosen, as a JSON schema, or a preset to edit."""

from typing import Annotated

import typer

from pipeline_lab.cli.arguments import AddOption, SetOption, StoreOption, apply_settings
from pipeline_lab.cli.output import print_json


def options(
    preset: Annotated[
        str | None, typer.Argument(help="Print this preset as JSON to edit, instead of the schema.", show_default=False)
    ] = None,
    records: Annotated[
        str | None,
        typer.Option(
            metavar="PATTERN",
            help="Print options for your own TFRecord files, from their contents.",
            show_default=False,
        ),
    ] = None,
    settings: SetOption = None,
    added: AddOption = None,
    store: StoreOption = None,
) -> None:
    """Print the JSON schema of a run's options, or a preset (or your records) as JSON to edit and pass to `run --options`."""
    from pipeline_lab.options.run_options import options_schema
    from pipeline_lab.runs.saved_presets import find_any_preset
    from pipeline_lab.runs.store import open_store

    if records is not None:
        if preset is not None:
            raise typer.BadParameter("specify a preset or --records, not both.")
        from pipeline_lab.runs.data_files.found_features import suggest_options

        typer.echo(apply_settings(suggest_options(records), settings, None, added).to_json(), nl=False)
        return
    if preset is None:
        if settings or added:
            raise typer.BadParameter("--set changes a preset; specify one, such as `options baseline`.")
        print_json(options_schema())
        return
    typer.echo(
        apply_settings(find_any_preset(open_store(store), preset).options, settings, store, added).to_json(), nl=False
    )
