"""``pipeline-lab app``: the Streamlit app on localhost."""

from typing import Annotated

import typer

from pipeline_lab.cli.arguments import StoreOption


def app(
    port: Annotated[int, typer.Option(help="TCP port on localhost.", min=1, max=65535)] = 8501,
    store: StoreOption = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open it in your browser.")] = True,
    allow_code: Annotated[
        bool, typer.Option("--allow-code", help="Let the app launch workloads of custom Python code.")
    ] = False,
) -> None:
    """Start the app; it serves this machine only, until you press Ctrl-C."""
    from pipeline_lab.ui.serving.server import serve

    serve(port, store=store, open_browser=browser, allow_code=allow_code)
