"""What no diagnosis may hold, whatever became of the files that it was made of."""

import re
from collections.abc import Iterator

_LENGTH = re.compile(r"_(ms|ns|s|bytes)$|^(events|windows|steps|calls|elements|count|bytes)$")
_MAY_BE_NEGATIVE = re.compile("gain|offset|slope|start|end|change|trend|difference|origin|correlation")
_MAY_EXCEED = re.compile("gain|cpu|load|change|ratio|overhead|extra")
TOLERANCE = 0.001


def find_impossible(value: object, name: str = "", path: str = "") -> Iterator[str]:
    """Name shares outside 0 to 100 percent and negative lengths in a JSON document."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from find_impossible(inner, str(key), f"{path}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from find_impossible(inner, name, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        is_share = name.endswith("_percent") and not _MAY_EXCEED.search(path)
        is_length = _LENGTH.search(name) and not _MAY_BE_NEGATIVE.search(path)
        if (is_share and not -TOLERANCE <= value <= 100 + TOLERANCE) or (is_length and value < -TOLERANCE):
            yield f"{path.lstrip('.')} = {value}"
