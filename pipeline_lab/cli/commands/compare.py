"""``pipeline-lab compare``: recorded runs side by side, and a gate for continuous integration."""

from typing import Annotated

import typer

from pipeline_lab.cli.arguments import HtmlOption, StoreOption
from pipeline_lab.cli.output import exit_with, messages, print_json, show_report, write_html
from pipeline_lab.errors import OptionsError


def compare(
    baseline: Annotated[str, typer.Argument(help="The run or log to compare with.", show_default=False)],
    candidates: Annotated[list[str], typer.Argument(help="1 to 19 runs or logs.", show_default=False)],
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole comparison as one JSON object.")] = False,
    html: HtmlOption = None,
    fail_if_slower: Annotated[
        str | None,
        typer.Option(
            metavar="PCT",
            help="Exit with code 3 if a candidate's step is longer by more than this, 4 if undecided.",
            show_default=False,
        ),
    ] = None,
    allow_drift: Annotated[
        bool,
        typer.Option("--allow-drift", help="Let runs that were recorded separately fail the threshold."),
    ] = False,
    store: StoreOption = None,
) -> None:
    """Compare recorded runs with a baseline: what differs in options, then in what was measured."""
    from pipeline_lab.comparison.gate import decide_gate, parse_percent
    from pipeline_lab.comparison.opening import compare_recorded

    if allow_drift and fail_if_slower is None:
        raise OptionsError(
            "--allow-drift is about the threshold of --fail-if-slower, which is missing; add it, such as --fail-if-slower 5%."
        )
    limit = None if fail_if_slower is None else parse_percent(fail_if_slower)
    with messages().status(f"Reading {len(candidates) + 1} runs …"):
        comparison = compare_recorded(baseline, *candidates, store=store)
    gate = None if limit is None else decide_gate(comparison, limit, allow_drift=allow_drift)
    if html is not None:
        write_html(comparison, html)
    if as_json:
        print_json({**comparison.to_json(), **({} if gate is None else {"gate": gate.to_json()})})
    else:
        show_report(comparison)
    if gate is not None:
        exit_with(gate)
