"""Problems of an options document as sentences: where, what is expected there, what stands there, and what may be meant."""

import types
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import closest


@dataclass(frozen=True)
class FieldPlace:
    """Where a problem lies in a document.

    Attributes:
        path: As ``--set`` takes it: without the names of the kinds that the validator chose among.
        type_: What belongs there; None where the document has no such place.
        limits: What narrows that type down, such as ``annotated_types.Ge``.
    """

    path: str
    type_: Any
    limits: tuple[Any, ...] = ()


def find_place(model: type[BaseModel], location: Sequence[str | int]) -> FieldPlace:
    """Follow the location of a problem through the fields of a model.

    Args:
        model: What validated the document.
        location: Of pydantic, which also names each kind and each alternative that it tried.
    """
    type_: Any = model
    limits: tuple[Any, ...] = ()
    path: list[str] = []
    for step in location:
        type_, more = _bare(type_)
        if step in _kinds(type_):
            type_ = _kinds(type_)[str(step)]
        elif isinstance(type_, type) and issubclass(type_, BaseModel):
            path.append(str(step))
            field = type_.model_fields.get(str(step))
            type_, limits = (None, ()) if field is None else (field.annotation, tuple(field.metadata))
        elif get_origin(type_) in (tuple, dict):
            path.append(str(step))
            type_, limits = get_args(type_)[0 if get_origin(type_) is tuple else 1], ()
        else:  # one of several alternatives: all of them are what may stand here
            break
        limits += more
    return FieldPlace(".".join(path), type_, limits)


def describe_type(type_: Any, limits: Sequence[Any] = ()) -> str:
    """Say what may stand at a place, such as "a whole number from 1 to 1024 or null"."""
    alternatives = list(_alternatives(type_, tuple(limits)))
    words = [word for one, narrowed in alternatives for word in _words(one, narrowed)]
    is_choice = len(words) > 1 and all(get_origin(one) is Literal for one, _ in alternatives)
    return f"{'one of ' if is_choice else ''}{_join(list(dict.fromkeys(words)))}"


def choices(type_: Any) -> list[str]:
    """Return the words that may stand at a place."""
    return [str(value) for one, _ in _alternatives(type_, ()) if get_origin(one) is Literal for value in get_args(one)]


def _alternatives(type_: Any, limits: tuple[Any, ...]) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    bare, more = _bare(type_)
    if get_origin(bare) in (Union, types.UnionType):
        for one in get_args(bare):
            yield from _alternatives(one, limits + more)
    else:
        yield bare, limits + more


def _bare(type_: Any) -> tuple[Any, tuple[Any, ...]]:
    """Take the annotations off a type."""
    if get_origin(type_) is not Annotated:
        return type_, ()
    inner, *notes = get_args(type_)
    limits = [each for note in notes for each in (note.metadata if isinstance(note, FieldInfo) else [note])]
    return inner, tuple(limits)


def _kinds(type_: Any) -> dict[str, type[BaseModel]]:
    """Return the models that a document chooses among by naming one, by that name."""
    if get_origin(type_) not in (Union, types.UnionType):
        return {}
    models = [one for one in get_args(type_) if isinstance(one, type) and issubclass(one, BaseModel)]
    return {str(next(iter(one.model_fields.values())).default): one for one in models}


def _words(type_: Any, limits: tuple[Any, ...]) -> list[str]:
    if get_origin(type_) is Literal:
        return [str(value) for value in get_args(type_)]
    if type_ is type(None):
        return ["null"]
    if type_ is bool:
        return ["true", "false"]
    if type_ in (int, float):
        return [f"a {'whole ' if type_ is int else ''}number{_range(limits)}"]
    if type_ is str:
        return [f"text{_length(limits)}"]
    if get_origin(type_) is tuple:
        return [f"a list, each entry {describe_type(get_args(type_)[0])}"]
    return ["a JSON object"]


def _length(limits: tuple[Any, ...]) -> str:
    least = next((limit.min_length for limit in limits if isinstance(limit, annotated_types.MinLen)), 0)
    most = next((limit.max_length for limit in limits if isinstance(limit, annotated_types.MaxLen)), None)
    if most is None:
        return f" of {least} or more characters" if least else ""
    return f" of {least} to {most} characters" if least else f" of at most {most} characters"


def _range(limits: tuple[Any, ...]) -> str:
    bounds = {type(limit): limit for limit in limits}
    least, above = bounds.get(annotated_types.Ge), bounds.get(annotated_types.Gt)
    most = bounds.get(annotated_types.Le)
    end = "" if most is None else f"{most.le}"
    if least is not None:
        return f" from {least.ge} to {end}" if end else f" of {least.ge} or more"
    if above is not None:
        return f" above {above.gt}" + (f" and at most {end}" if end else "")
    return f" of at most {end}" if end else ""


def _join(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


MOST_PROBLEMS = 5
SHOWN_CHARACTERS = 60
SURE = 0.85
"""How similar whole paths must be; paths with the same start are similar anyway."""


def explain_problems(error: ValidationError, model: type[BaseModel]) -> str:
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
            return f"The options are not valid JSON: {message.removeprefix('Invalid JSON: ')}."
        case "value_error":
            return f"{place.path + ': ' if place.path else ''}{message}{'' if message.endswith('?') else '.'}"
        case "missing":
            return f"{place.path} is missing; it should be {describe_type(place.type_, place.limits)}."
        case "union_tag_invalid" | "union_tag_not_found":
            return _unknown_kind(problem, place)
        case _:
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
    """Find an option by its own name, then next to where it was looked for, then anywhere."""
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


def _unknown_kind(problem: ErrorDetails, place: FieldPlace) -> str:
    context = problem["ctx"]
    path = f"{place.path}.{context['discriminator'].strip(chr(39))}"
    if "tag" not in context:
        return f"{path} is missing; name one of those that `pipeline-lab options` lists."
    known = [name.strip(" '") for name in context["expected_tags"].split(",")]
    meant = closest(context["tag"], known)
    rest = f"did you mean {meant}?" if meant else f"it should be one of {', '.join(known)}."
    return f"{path} cannot be {_shown(context['tag'])}; {rest}"


def _wrong_value(problem: ErrorDetails, place: FieldPlace) -> str:
    got = problem.get("input")
    expected = describe_type(place.type_, place.limits)
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
