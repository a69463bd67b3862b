"""How many examples each file holds, written the short way."""

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

MAX_FILES = 10_000


def parse_file_sizes(value: Any) -> Any:
    """Read ``"1000,2000,3000"`` or ``"8x512"`` (eight files of 512) into a tuple of examples per file."""
    if isinstance(value, int):
        return (value,)
    if not isinstance(value, str):
        return value
    sizes: list[int] = []
    for part in value.split(","):
        match = re.fullmatch(r"\s*(?:(\d{1,9})\s*[x×]\s*)?(\d{1,12})\s*", part)
        if not match:
            raise ValueError(f"{part.strip()!r} is no size; write numbers like 1000,2000,3000 or 8x512")
        count = int(match[1] or 1)
        if len(sizes) + count > MAX_FILES:
            raise ValueError(f"more than {MAX_FILES} files")
        sizes.extend([int(match[2])] * count)
    return tuple(sizes)


FileSizes = Annotated[
    tuple[Annotated[int, Field(ge=1, le=10_000_000)], ...],
    BeforeValidator(parse_file_sizes),
    Field(min_length=1, max_length=MAX_FILES),
]
"""Examples in each file; written ``1000,2000,3000`` or ``8x512`` on the command line."""
