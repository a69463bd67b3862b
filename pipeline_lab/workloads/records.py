"""A user's own TFRecord files, and what they hold: the features of a ``tf.train.Example``, written as one line of
text.

``label:int64, vector:float32[128], tokens:int64[*], image:bytes``: a name, a type, and how many values each record
has; one where nothing is said, ``[*]`` where their number differs from record to record.
"""

import re
from collections.abc import Iterable
from typing import ClassVar, Literal

from pydantic import Field, field_validator

from pipeline_lab.data_classes import dataclass
from pipeline_lab.stages.code import INDENT, Code, quote, wanted
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.read import PerFile, read_code, read_lines
from pipeline_lab.workloads.workload import Workload, WorkloadSource

Kind = Literal["int64", "float32", "bytes"]

MAX_FEATURES = 200
_FEATURE = re.compile(r"(?P<name>[^,]+):(?P<kind>int64|float32|bytes)(?:\[(?P<length>\*|\d{1,9})\])?")


@dataclass(frozen=True)
class RecordFeature:
    """One feature.

    Attributes:
        name: As in the records.
        kind: Of its values.
        length: Values in each record; None where it differs.
    """

    name: str
    kind: Kind
    length: int | None

    def __str__(self) -> str:
        values = "" if self.length == 1 else f"[{'*' if self.length is None else self.length}]"
        return f"{self.name}:{self.kind}{values}"


def parse_features(text: str) -> tuple[RecordFeature, ...]:
    """Read the features from their text.

    Raises:
        ValueError: It is not written as it should be, or names a feature twice.
    """
    features = [_parse(part.strip()) for part in text.split(",") if part.strip()]
    names = [feature.name for feature in features]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"the feature {twice!r} is there twice; name each one once")
    if len(features) > MAX_FEATURES:
        raise ValueError(f"{len(features)} features are more than {MAX_FEATURES}; leave out those that you do not need")
    return tuple(features)


def format_features(features: Iterable[RecordFeature]) -> str:
    """Write features as :func:`parse_features` reads them."""
    return ", ".join(str(feature) for feature in features)


def _parse(part: str) -> RecordFeature:
    match = _FEATURE.fullmatch(part)
    if not match:
        raise ValueError(
            f"{part!r} is not a feature; write them like label:int64, vector:float32[128], tokens:int64[*]"
        )
    kind: Kind = "int64" if match["kind"] == "int64" else "float32" if match["kind"] == "float32" else "bytes"
    length = None if match["length"] == "*" else int(match["length"] or 1)
    return RecordFeature(match["name"].strip(), kind, length)


class RecordsWorkload(Workload):
    """Read your own TFRecord files, whatever features they hold, and train a light step on their numbers."""

    kind: Literal["records"] = "records"
    pattern: str = Field("", max_length=4096)
    """A glob of your files, such as /data/train-*.tfrecord."""
    features: str = Field("", max_length=20_000)
    """What each record holds, such as label:int64, vector:float32[128], tokens:int64[*], image:bytes; features that are
    not named are not parsed."""
    label: str | None = Field(None, max_length=200)
    """The feature, one int64, that the step learns to predict; without one it learns to copy its input."""
    classes: int = Field(10, ge=2, le=100_000)
    """More than the largest label."""

    own_stages: ClassVar = ("parse",)
    step_options: ClassVar = frozenset({"precision"})
    parses_batches: ClassVar = True
    finds_features: ClassVar = True

    @field_validator("features")
    @classmethod
    def _features_can_be_read(cls, text: str) -> str:
        return format_features(parse_features(text))

    def source(self, pipeline: PipelineOptions, *, has_probe: bool) -> WorkloadSource:
        per_file = PerFile.PROBED if has_probe else PerFile.PLAIN
        names = {'"features"': True, '"label"': self.label is not None, '"id"': has_probe}
        about = {
            f"files = sorted(tf.io.gfile.glob({quote(self.pattern)}))": True,
            f"Elements are batches of {{{', '.join(wanted(names))}}}; the features are a dict by name.": True,
            "With the sample probe: each example carries file index × 2**40 + record number as its id.": has_probe,
        }
        constants = ["FEATURES = {", *(f"{INDENT}{_spec(each)}," for each in self.parsed_features), "}"]
        parse = _parse_function(self, is_vectorized=pipeline.is_vectorized("parse"), has_probe=has_probe)
        return WorkloadSource(
            about=wanted(about),
            code=read_code(per_file) + Code(constants=tuple(constants), functions=(parse,)),
            written={"read": lambda read: read_lines(read, per_file)},
        )

    def check(self, pipeline: PipelineOptions) -> None:
        if not self.pattern:
            raise ValueError("pattern is empty; give the path of your files, such as /data/train-*.tfrecord")
        features = {feature.name: feature for feature in self.parsed_features}
        if not features:
            raise ValueError("features is empty; read them from the files (in the form, or by `options --records`)")
        if self.label is None:
            return
        if self.label not in features:
            raise ValueError(f"label is {self.label!r}, which is not one of the features: {', '.join(features)}")
        if features[self.label] != RecordFeature(self.label, "int64", 1):
            raise ValueError(
                f"a label is one int64 per record, and {features[self.label]} is not; choose another, or none"
            )
        if len(features) == 1:
            raise ValueError("there is nothing but the label to train on; name another feature")

    def varies_in(self, pipeline: PipelineOptions) -> bool:
        return self.has_varied_features and not pipeline.is_vectorized("parse")

    @property
    def users_pattern(self) -> str:
        return self.pattern

    @property
    def has_labels(self) -> bool:
        return self.label is not None

    @property
    def needs_probe(self) -> bool:
        return True

    @property
    def parsed_features(self) -> tuple[RecordFeature, ...]:
        return parse_features(self.features)

    @property
    def has_varied_features(self) -> bool:
        """Say whether some feature has more values in one record than in another."""
        return any(feature.length is None for feature in self.parsed_features)


_TYPES = {"int64": "tf.int64", "float32": "tf.float32", "bytes": "tf.string"}


def _spec(feature: RecordFeature) -> str:
    kind = _TYPES[feature.kind]
    if feature.length is None:
        return f"{quote(feature.name)}: tf.io.RaggedFeature({kind})"
    shape = [] if feature.length == 1 else [feature.length]
    return f"{quote(feature.name)}: tf.io.FixedLenFeature({shape}, {kind})"


def _parse_function(workload: RecordsWorkload, *, is_vectorized: bool, has_probe: bool) -> str:
    records = "records" if is_vectorized else "record"
    argument = "element: dict[str, tf.Tensor]" if has_probe else f"{records}: tf.Tensor"
    function = "parse_example" if is_vectorized else "parse_single_example"
    given = 'element["record"]' if has_probe else records
    fields = {
        '"features": features': True,
        f'"label": features.pop({quote(workload.label or "")})': workload.label is not None,
        '"id": element["id"]': has_probe,
    }
    return "\n".join(
        [
            f"def parse({argument}) -> dict[str, object]:",
            f'{INDENT}"""Parse {"a batch of Examples" if is_vectorized else "an Example"}."""',
            f"{INDENT}features = tf.io.{function}({given}, FEATURES)",
            f"{INDENT}return {{{', '.join(wanted(fields))}}}",
        ]
    )
