"""What the job reads and trains on."""

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from pipeline_lab.options.base import Options

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
            raise ValueError(f"{part.strip()!r} is no file size; write numbers like 1000,2000,3000 or 8x512")
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


class ImagesWorkload(Options):
    """Train a small residual network on JPEG images in TFRecord files."""

    kind: Literal["images"] = "images"
    data: Literal["digits", "random", "files"] = "digits"
    """``digits``: scikit-learn's 1,797 real digits, scaled up; ``random``: noise images; ``files``: your TFRecords."""
    image_size: int = Field(32, ge=8, le=1024)
    """Height and width of the stored images, pixels."""
    examples_per_file: FileSizes = (512,) * 8
    pattern: str | None = Field(None, max_length=4096)
    """For ``data = files``: a glob of TFRecord files that hold `image` (encoded) and `label` (int64)."""
    image_feature: str = Field("image", min_length=1, max_length=200)
    label_feature: str = Field("label", min_length=1, max_length=200)
    classes: int = Field(10, ge=2, le=100_000)

    @model_validator(mode="after")
    def _pattern_belongs_to_files(self) -> "ImagesWorkload":
        if self.data == "files" and not self.pattern:
            raise ValueError("data = files needs a pattern, such as /data/train-*.tfrecord")
        if self.data != "files" and self.pattern:
            raise ValueError(f"a pattern only applies to data = files, not to data = {self.data}; remove one of them")
        return self


class SyntheticWorkload(Options):
    """Imitate any job: known times for reading, mapping and computing, so that the right answer is known."""

    kind: Literal["synthetic"] = "synthetic"
    examples_per_file: FileSizes = (1000,) * 4
    element_bytes: int = Field(1024, ge=8, le=100_000_000)
    """Payload of one record, bytes."""
    read_ms: float = Field(0.0, ge=0, le=60_000)
    """Added to the reading of each record, ms."""
    map_ms: float = Field(1.0, ge=0, le=60_000)
    """Time of the `map` stage for each record, ms."""
    compute_ms: float = Field(10.0, ge=0, le=600_000)
    """Time of the training step on one batch, ms."""
    python_ms: float = Field(0.0, ge=0, le=600_000)
    """Python work between two steps (a slow callback, say), ms."""
    work: Literal["sleep", "spin"] = "sleep"
    """``sleep`` leaves the cores free, as waiting for storage does; ``spin`` keeps a core busy, as decoding does."""


Workload = Annotated[ImagesWorkload | SyntheticWorkload, Field(discriminator="kind")]
