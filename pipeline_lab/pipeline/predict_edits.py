"""``model.predict(x, verbose=0)`` written as ``model.predict_on_batch(x)``."""

import libcst as cst

from pipeline_lab.pipeline.parsed_source import ParsedSource, RefusedError, Splice
from pipeline_lab.pipeline.predict_samples import ON_BATCH, PREDICT
from pipeline_lab.pipeline.recipe import SourcePlace

LEFT_OUT = ("batch_size", "verbose")
"""Arguments after the first one, in their order, that mean nothing for a single batch; another one is refused."""


def edit_predict(source: ParsedSource, place: SourcePlace) -> list[Splice]:
    """Return the splices that rewrite the call.

    Raises:
        RefusedError: The call is not written so that only its name and these arguments have to change.
    """
    call = source.node_at(place)
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute) or call.func.attr.value != PREDICT:
        raise RefusedError(f"The call at {place} is not written as model.predict(…).")
    given = [argument for index, argument in enumerate(call.args) if _name(argument, index, place) == "x"]
    if len(given) != 1:
        raise RefusedError(f"The call at {place} does not say what it predicts.")
    first, last = source.span(call.args[0])[0], source.span(call.args[-1])[1]
    begin, end = source.span(given[0])
    gone = source.raw[first:begin] + source.raw[end:last]
    if b"#" in gone or b"(" in gone:
        raise RefusedError(f"Beside what it predicts, the call at {place} holds a comment or brackets.")
    name = source.span(call.func.attr)
    splices = [Splice(*name, ON_BATCH.encode()), Splice(first, begin, b""), Splice(end, last, b"")]
    return [each for each in splices if each.start < each.end]


def _name(argument: cst.Arg, index: int, place: SourcePlace) -> str:
    if argument.star:
        raise RefusedError(f"The call at {place} takes arguments with {argument.star}.")
    names = ("x", *LEFT_OUT)
    if argument.keyword is None and index >= len(names):
        raise RefusedError(f"The call at {place} takes more arguments than x, batch_size and verbose.")
    name = names[index] if argument.keyword is None else argument.keyword.value
    if name not in names:
        raise RefusedError(f"The call at {place} takes {name}, which predict_on_batch does not take.")
    return name
