"""What an option may be, in words, read from the type that validates it."""

import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types
from pydantic import BaseModel
from pydantic.fields import FieldInfo


@dataclass(frozen=True)
class Place:
    """Where a problem lies in a document.

    Attributes:
        path: As ``--set`` takes it: without the names of the kinds that the validator chose among.
        type_: What belongs there; None where the document has no such place.
        limits: What narrows that type down, such as ``annotated_types.Ge``.
    """

    path: str
    type_: Any
    limits: tuple[Any, ...] = ()


def find_place(model: type[BaseModel], location: Sequence[str | int]) -> Place:
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
    return Place(".".join(path), type_, limits)


def describe(type_: Any, limits: Sequence[Any] = ()) -> str:
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
        return [f"a list, each entry {describe(get_args(type_)[0])}"]
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
