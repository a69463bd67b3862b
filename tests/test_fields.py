"""The base of the options models: what docstrings under fields become."""

from typing import Literal

from pydantic import TypeAdapter

from pipeline_lab.fields import Options


class Stage(Options):
    kind: str
    """Its name
    in the options."""
    size: int = 1


class Batch(Stage):
    kind: Literal["batch"] = "batch"
    size: int = 32
    """Examples of a batch."""


class Job(Options):
    stages: tuple[Batch, ...]
    """In their order."""
    first: Batch
    """Which is built first."""


def test_docstrings_describe_the_fields_also_those_written_anew_without_one() -> None:
    properties = Batch.model_json_schema()["properties"]
    assert properties["kind"]["description"] == "Its name\nin the options."
    assert properties["size"]["description"] == "Examples of a batch."
    assert "description" not in Stage.model_json_schema()["properties"]["size"]


def test_docstrings_describe_fields_of_models_in_models() -> None:
    schema = TypeAdapter(Job).json_schema()
    assert schema["properties"]["stages"]["description"] == "In their order."
    assert schema["properties"]["first"] == {"$ref": "#/$defs/Batch", "description": "Which is built first."}
    assert schema["$defs"]["Batch"]["properties"]["size"]["description"] == "Examples of a batch."
