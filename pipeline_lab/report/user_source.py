"""The user's own lines behind a stage or a verdict, as blocks."""

from pathlib import Path

from pipeline_lab.errors import StoreError
from pipeline_lab.pipeline.recipe import DatasetCall, read_recipe
from pipeline_lab.report.content import CodeBlock, Table
from pipeline_lab.runs.run_documents import WrittenCall
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.user_sources import excerpts


def source_blocks(path: str, calls: tuple[WrittenCall, ...]) -> tuple[CodeBlock, ...]:
    """Return the source around each call with its line marked.

    Args:
        path: Of the run.
        calls: What was written.
    """
    return tuple(CodeBlock(each.title, each.text, "text") for each in excerpts(RunFolder(Path(path)), calls))


MAX_USES, MAX_CALLS = 30, 12


def datasets_read(path: str) -> tuple[Table, ...]:
    """List the datasets that a script read, what for and where, each with the calls that made it; nothing for other runs.

    Args:
        path: Of the run.
    """
    try:
        recipe = read_recipe(RunFolder(Path(path)).recipe)
    except StoreError:
        recipe = None
    if recipe is None or not recipe.uses:
        return ()
    rows = tuple(
        (
            "training loop" if use.trained_steps and use == recipe.trained else use.role,
            f"{use.place or '–'} {use.text}".strip(),
            _chain(tuple(recipe.upstream(use.call))),
            f"{use.iterators}",
        )
        for use in recipe.uses[:MAX_USES]
    )
    note = "Calls with ? are of a kind that is not known; they are left as they are."
    unknown = any(not call.is_understood for call in recipe.calls)
    return (
        Table(
            "Datasets that the script read",
            ("For", "Where", "Made by", "Iterators"),
            rows,
            (3,),
            note if unknown else "",
        ),
    )


def _chain(calls: tuple[DatasetCall, ...]) -> str:
    """Write the calls behind a dataset, the source first; those that one call of a library made, once."""
    said: list[str] = []
    for call in reversed(calls):
        words = call.text if call.text and not call.is_direct else call.words
        named = f"{call.place or ''} {words}{'' if call.is_understood else ' ?'}".strip()
        if named not in said[-1:]:
            said.append(named)
    shown = said if len(said) <= MAX_CALLS else [*said[: MAX_CALLS - 1], f"{len(said) - MAX_CALLS + 1} more"]
    return ", ".join(shown)
