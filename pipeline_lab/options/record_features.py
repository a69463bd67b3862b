"""What a user's records hold: the features of a ``tf.train.Example``, written as one line of text.

``label:int64, vector:float32[128], tokens:int64[*], image:bytes``: a name, a type, and how many values each record has;
one where nothing is said, ``[*]`` where their number differs from record to record.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

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
        raise ValueError(f"{part!r} is no feature; write them like label:int64, vector:float32[128], tokens:int64[*]")
    kind: Kind = "int64" if match["kind"] == "int64" else "float32" if match["kind"] == "float32" else "bytes"
    length = None if match["length"] == "*" else int(match["length"] or 1)
    return RecordFeature(match["name"].strip(), kind, length)
