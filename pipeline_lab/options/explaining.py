"""Problems of an options document as sentences: where, what is expected there, and what stands there instead."""

from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from pipeline_lab.options.closest import closest
from pipeline_lab.options.expected import Place, choices, describe, find_place

MOST_PROBLEMS = 5
SHOWN_CHARACTERS = 60
SURE = 0.85
"""How alike whole paths must be: most of two is alike where they begin alike."""


def explain(error: ValidationError, model: type[BaseModel]) -> str:
    """Say in one sentence per problem what is wrong with options, naming the place.

    Args:
        error: What the validator found.
        model: What it was to validate.
    """
    problems = error.errors(include_url=False)
    unknown = [problem["loc"] for problem in problems if problem["type"] == "extra_forbidden"]
    others = [_sentence(problem, model) for problem in problems if problem["type"] != "extra_forbidden"]
    return " ".join([*_unknown_sentences(unknown, model), *dict.fromkeys(others)][:MOST_PROBLEMS])


def _unknown_sentences(locations: list[tuple[str | int, ...]], model: type[BaseModel]) -> list[str]:
    """Say which names do not exist, those of one place in one sentence."""
    names: dict[tuple[str | int, ...], list[str]] = {}
    for location in locations:
        names.setdefault(location[:-1], []).append(str(location[-1]))
    sentences = []
    for holder_location, unknown in names.items():
        holder = find_place(model, holder_location)
        begin = f"{holder.path}." if holder.path else ""
        known = [begin + name for name in getattr(holder.type_, "model_fields", {})]
        if len(unknown) == 1:
            sentences.append(unknown_option(begin + unknown[0], known))
        else:
            has = ", ".join(_names_below(holder.path, known))
            sentences.append(f"{holder.path or 'The document'} has no options {', '.join(unknown)}; it has {has}.")
    return sentences


def _sentence(problem: ErrorDetails, model: type[BaseModel]) -> str:
    place = find_place(model, problem["loc"])
    message = str(problem["msg"]).removeprefix("Value error, ").rstrip(".")
    match problem["type"]:
        case "json_invalid":
            return f"The options are no valid JSON: {message.removeprefix('Invalid JSON: ')}."
        case "value_error":
            return f"{place.path + ': ' if place.path else ''}{message}{'' if message.endswith('?') else '.'}"
        case "missing":
            return f"{place.path} is missing; it should be {describe(place.type_, place.limits)}."
        case "union_tag_invalid" | "union_tag_not_found":
            return _unknown_kind(problem, place)
    return _wrong_value(problem, place)


def unknown_option(path: str, known: list[str]) -> str:
    """Say that there is no such option, and which one may be meant.

    Args:
        path: What was written.
        known: Paths that exist.
    """
    if inside := _names_below(path, known):
        return f"{path!r} holds several options; name one of {', '.join(inside)}."
    meant = _meant_path(path, known)
    if meant is not None:
        return f"There is no option {path!r}; did you mean {meant}?"
    holder = path.rpartition(".")[0]
    while holder and not _names_below(holder, known):
        holder = holder.rpartition(".")[0]
    return f"There is no option {path!r}; {holder or 'the document'} has {', '.join(_names_below(holder, known))}."


def _meant_path(path: str, known: list[str]) -> str | None:
    """Find an option by its own name where that is known, then beside where it was looked for, then anywhere."""
    holder, _, name = path.rpartition(".")
    same_name = [one for one in known if one.rpartition(".")[2] == name]
    if same_name:
        return closest(path, same_name) or same_name[0]
    beside = {one.rpartition(".")[2]: one for one in known if one.rpartition(".")[0] == holder}
    meant = closest(name, beside)
    return beside[meant] if meant else closest(path, known, SURE)


def _names_below(holder: str, known: list[str]) -> list[str]:
    begin = f"{holder}." if holder else ""
    return sorted({one.removeprefix(begin).partition(".")[0] for one in known if one.startswith(begin)})


def _unknown_kind(problem: ErrorDetails, place: Place) -> str:
    context = problem["ctx"]
    path = f"{place.path}.{context['discriminator'].strip(chr(39))}"
    if "tag" not in context:
        return f"{path} is missing; name one of those that `pipeline-lab options` lists."
    known = [name.strip(" '") for name in context["expected_tags"].split(",")]
    meant = closest(context["tag"], known)
    rest = f"did you mean {meant}?" if meant else f"it should be one of {', '.join(known)}."
    return f"{path} cannot be {_shown(context['tag'])}; {rest}"


def _wrong_value(problem: ErrorDetails, place: Place) -> str:
    got = problem.get("input")
    expected = describe(place.type_, place.limits)
    if isinstance(got, list | tuple | dict) and problem["type"] in ("too_short", "too_long"):
        message = str(problem["msg"])
        return f"{place.path}: {message[0].lower() + message[1:]}."
    meant = closest(got, choices(place.type_)) if isinstance(got, str) else None
    rest = "." if meant is None else f"; did you mean {meant}?"
    return f"{place.path or 'The document'} should be {expected}, but is {_shown(got)}{rest}"


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "a JSON object"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, str):
        return repr(value[:SHOWN_CHARACTERS])
    return "null" if value is None else str(value)[:SHOWN_CHARACTERS].lower()
