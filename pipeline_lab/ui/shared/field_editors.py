"""One widget per option, made from the option's JSON schema: its type, its limits, its docstring as help."""

import json
from functools import cache
from typing import Any

import streamlit as st

from pipeline_lab.fields import FileSizes, Options
from pipeline_lab.ui.shared.draft import Document

Schema = dict[str, Any]

PARALLELISM = ("serial", "autotune", "2", "4", "8", "16")
AUTOMATIC = "automatic"
_AUTOMATIC = {AUTOMATIC: None, "yes": True, "no": False}

_UNITS = {"_ms": "ms", "_mb": "MB", "_s": "s", "_hz": "Hz", "_degrees": "degrees", "_bytes": "bytes", "_percent": "%"}


@cache
def schema_of(model: type[Options]) -> dict[str, Schema]:
    """Return the JSON schema of each of a model's fields."""
    properties: dict[str, Schema] = model.model_json_schema()["properties"]
    return properties


def label_of(name: str, model: type[Options] = Options) -> str:
    """Return an option's label: as its model says, else its name with the unit in parentheses."""
    if name in model.labels:
        return model.labels[name]
    for ending, unit in _UNITS.items():
        if name.endswith(ending):
            return f"{name.removesuffix(ending).replace('_', ' ').capitalize()} ({unit})"
    return name.replace("_", " ").capitalize()


def edit_fields(
    model: type[Options], values: Document, key: str, *, skip: tuple[str, ...] = (), only: tuple[str, ...] = ()
) -> Document:
    """Show a widget for each field of a model and return the document as it now reads.

    Args:
        model: The options model.
        values: Its current values, JSON types.
        key: Prefix of the widgets' keys.
        skip: Fields that are shown elsewhere and kept as they are.
        only: The fields to show; all where none is named.
    """
    edited = dict(values)
    with st.grid("auto", min_column_width=170, gap="small", vertical_alignment="bottom"):
        for name, schema in schema_of(model).items():
            if "const" in schema or name in skip or (only and name not in only):
                continue
            if not _applies(model, name, edited):
                edited[name] = schema.get("default")
                continue
            edited[name] = edit_field(model, name, values.get(name, schema.get("default")), f"{key}.{name}")
    return edited


def edit_folded(model: type[Options], values: Document, key: str, *, skip: tuple[str, ...] = ()) -> Document:
    """Show the fields of a model that matter, the others folded; arguments as for :func:`edit_fields`."""
    first = tuple(name for name in model.matters if name not in skip)
    rest = [name for name, schema in schema_of(model).items() if "const" not in schema and name not in (*first, *skip)]
    if not first or not rest:
        return edit_fields(model, values, key, skip=skip)
    edited = edit_fields(model, values, key, only=first)
    changed = sum(values.get(name) != schema_of(model)[name].get("default") for name in rest)
    with st.expander(f"More settings{f' ({changed} changed)' if changed else ''}", key=f"{key}.more"):
        return edit_fields(model, edited, key, only=tuple(rest))


def edit_settings(model: type[Options], key: str, main: tuple[str, ...], fine: tuple[str, ...]) -> Document:
    """Show the main fields of a model, and the advanced ones folded, starting from their defaults."""
    values: Document = {name: model.model_fields[name].default for name in (*main, *fine)}
    values = edit_fields(model, values, key, only=main)
    with st.expander("More settings"):
        return edit_fields(model, values, key, only=fine)


def edit_field(model: type[Options], name: str, value: Any, key: str) -> Any:
    """Show the widget that suits a field's schema and return its value as JSON would hold it."""
    schema = schema_of(model)[name]
    label, help_ = label_of(name, model), schema.get("description")
    kinds = _kinds(schema)
    if "enum" in schema:
        return st.selectbox(label, schema["enum"], schema["enum"].index(value), key=key, help=help_)
    if chosen_from := next((part["enum"] for part in _parts(schema) if "enum" in part), None):
        names = [AUTOMATIC, *chosen_from]
        chosen = st.selectbox(label, names, 0 if value is None else names.index(value), key=key, help=help_)
        return None if chosen == AUTOMATIC else chosen
    if kinds == {"boolean"}:
        return st.toggle(label, value, key=key, help=help_)
    if kinds == {"boolean", "null"}:
        names = list(_AUTOMATIC)
        chosen = st.selectbox(label, names, list(_AUTOMATIC.values()).index(value), key=key, help=help_)
        return _AUTOMATIC[chosen]
    if "string" in kinds and kinds & {"integer"}:
        return _edit_parallelism(label, value, key, help_, serial="null" in kinds)
    if kinds & {"integer", "number"}:
        return _edit_number(label, schema, value, key, help_, model.left_empty.get(name, AUTOMATIC))
    if kinds == {"object"}:
        return st.text_input(label, write_arguments(value), key=key, help=help_)
    if kinds == {"array"}:
        return st.text_input(label, write_file_sizes(value), key=key, help=help_ or FileSizes.__doc__)
    return st.text_input(label, value or "", key=key, help=help_) or (None if "null" in kinds else "")


def write_file_sizes(sizes: Any) -> str:
    """Write a list of numbers in the short form that options accept: ``8x512`` or ``1000,2000,3000``."""
    if isinstance(sizes, str):
        return sizes
    runs: list[list[float]] = []
    for size in sizes:
        if runs and runs[-1][1] == size:
            runs[-1][0] += 1
        else:
            runs.append([1, size])
    return ",".join(f"{count:g}x{size}" if count > 1 else f"{size:.12g}" for count, size in runs)


def write_arguments(arguments: Any) -> str:
    """Write arguments in the short form that options accept: ``batch=64, shuffle=false``."""
    if isinstance(arguments, str):
        return arguments
    return ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in (arguments or {}).items())


def _edit_parallelism(label: str, value: Any, key: str, help_: str | None, *, serial: bool) -> Any:
    options = [option for option in PARALLELISM if serial or option != "serial"]
    current = "serial" if value is None else str(value)
    if current not in options:
        options.append(current)
    note = f"{help_ or ''} Choose or type a number.".strip()
    chosen = st.selectbox(label, options, options.index(current), key=key, help=note, accept_new_options=True)
    return None if chosen == "serial" else int(chosen) if str(chosen).isdecimal() else chosen


def _edit_number(label: str, schema: Schema, value: Any, key: str, help_: str | None, empty: str) -> Any:
    limits = next(part for part in _parts(schema) if part.get("type") in ("integer", "number"))
    low = limits.get("minimum", limits.get("exclusiveMinimum"))
    high = limits.get("maximum")
    cast = int if limits["type"] == "integer" else float
    return st.number_input(
        label,
        min_value=_cast(cast, low),
        max_value=_cast(cast, high),
        value=_cast(cast, value),
        step=cast(1) if cast is int else None,
        format="%d" if cast is int else "%g",
        placeholder=empty,
        key=key,
        help=help_,
    )


def _cast(cast: type[int] | type[float], value: Any) -> Any:
    return None if value is None else cast(value)


def _applies(model: type[Options], name: str, values: Document) -> bool:
    condition = model.shown_with.get(name)
    if condition is None:
        return True
    value, fitting = values.get(condition[0]), condition[1]
    return value is not None if fitting is None else value in fitting


def _parts(schema: Schema) -> list[Schema]:
    parts: list[Schema] = schema.get("anyOf", [schema])
    return parts


def _kinds(schema: Schema) -> set[str]:
    return {part["type"] for part in _parts(schema)}
