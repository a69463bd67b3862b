"""The features of a ``tf.train.Example``, read without TensorFlow (``core/example/example.proto`` and ``feature.proto``).

Messages are ``Example {Features features = 1}``, ``Features {map<string, Feature> feature = 1}`` and ``Feature`` with one
of the lists ``bytes_list = 1``, ``float_list = 2``, ``int64_list = 3``, each ``{repeated value = 1}``, packed for numbers.

The features of a user's TFRecord files are read from their first records and compared with the expected ones.
"""

import contextlib
import glob
import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import DataError
from pipeline_lab.options.run_options import RunOptions, read_options
from pipeline_lab.runs.data_files.tfrecord import read_records
from pipeline_lab.stages.batches import BatchStage
from pipeline_lab.stages.delivery import PrefetchStage
from pipeline_lab.stages.functions import ParseStage
from pipeline_lab.stages.order import RepeatStage, ShuffleStage
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.read import ReadStage
from pipeline_lab.workloads.records import MAX_FEATURES, Kind, RecordFeature, format_features, parse_features

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_KINDS: dict[int, Kind] = {1: "bytes", 2: "float32", 3: "int64"}
FLOAT_BYTES = 4


class NoExampleError(ValueError):
    """A record is not an Example."""


@dataclass(frozen=True)
class FoundFeature:
    """A feature of one record.

    Attributes:
        kind: Of its values; None where it has none.
        count: Of its values.
    """

    kind: Kind | None
    count: int


def find_features(record: bytes) -> dict[str, FoundFeature]:
    """Return the features of a record by name.

    Raises:
        NoExampleError: It is not an Example.
    """
    view = memoryview(record)
    found = {}
    for features in _messages(view, 1):
        for entry in _messages(features, 1):
            parts = dict(_fields(entry))
            name = parts.get(1, b"")
            if isinstance(name, int):
                raise NoExampleError
            try:
                found[bytes(name).decode()] = _feature(parts.get(2, b""))
            except UnicodeDecodeError:
                raise NoExampleError from None
    if record and not found:
        raise NoExampleError
    return found


def _feature(message: "memoryview | bytes | int") -> FoundFeature:
    if isinstance(message, int):
        raise NoExampleError
    for number, content in _fields(memoryview(message)):
        if number not in _KINDS or isinstance(content, int):
            raise NoExampleError
        kind = _KINDS[number]
        return FoundFeature(kind, sum(_count(kind, value) for field, value in _fields(content) if field == 1))
    return FoundFeature(None, 0)


def _count(kind: Kind, value: "memoryview | int") -> int:
    """Return how many values one field holds; a packed list of numbers is one field."""
    if isinstance(value, int) or kind == "bytes":
        return 1
    if kind == "float32":
        return max(1, len(value) // FLOAT_BYTES)
    return sum(byte < 0x80 for byte in value)  # each varint ends with a byte below 128


def _messages(view: memoryview, wanted: int) -> Iterator[memoryview]:
    for number, content in _fields(view):
        if number == wanted:
            if isinstance(content, int):
                raise NoExampleError
            yield content


def _fields(view: memoryview) -> Iterator[tuple[int, "memoryview | int"]]:
    """Yield number and content of each field of a message; numbers of fixed size as their bytes."""
    position = 0
    while position < len(view):
        tag, position = _varint(view, position)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, position = _varint(view, position)
            yield number, value
            continue
        if wire == _BYTES:
            length, position = _varint(view, position)
        elif wire in (_FIXED64, _FIXED32):
            length = 8 if wire == _FIXED64 else 4
        else:
            raise NoExampleError
        if position + length > len(view):
            raise NoExampleError
        yield number, view[position : position + length]
        position += length


def _varint(view: memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(view) and shift < 64:
        byte = view[position]
        value |= (byte & 0x7F) << shift
        position += 1
        if byte < 0x80:
            return value, position
        shift += 7
    raise NoExampleError


LOOKED_AT = 50
"""Records that are read of each file."""
MAX_FILES = 10
MAX_MATCHES = 10_000
"""Matches after which the search ends."""
LABEL = "label"


def matching_files(pattern: str, most: int | None = None) -> list[Path]:
    """Return the files that match a pattern, sorted by name.

    Args:
        pattern: A glob.
        most: Number of matches after which the search ends; None for all.

    Raises:
        DataError: No file matches, or the pattern searches without end.
    """
    check_depth(pattern)
    found = glob.iglob(pattern)  # noqa: PTH207, Path.glob takes no absolute pattern
    names = sorted(itertools.islice(found, most))
    paths = [path for name in names if (path := Path(name).absolute()).is_file()]
    if not paths:
        raise DataError(
            f"No file matches {pattern!r}; give the full path of your TFRecord files, such as /data/train-*.tfrecord."
        )
    return paths


def check_depth(pattern: str) -> None:
    """Refuse a pattern that searches every folder below another, which may never end.

    Raises:
        DataError: It does.
    """
    if "**" in pattern:
        raise DataError(
            f"The pattern {pattern!r} contains '**', which searches every folder below; write '*' for each folder "
            "instead, such as /data/*/train-*.tfrecord."
        )


def infer_features(pattern: str, check: Callable[[Path], None] | None = None) -> tuple[RecordFeature, ...]:
    """Return the features of the files of a pattern, from the first records of the first files.

    A feature that some record lacks, or has more values of than another, is one of varying length.

    Args:
        pattern: A glob.
        check: Refuses a file that may not be read, by raising.

    Raises:
        DataError: No file matches, one is damaged or holds no Examples, records disagree about a type, or the features
            cannot be written as options.
    """
    paths = matching_files(pattern, MAX_MATCHES)[:MAX_FILES]
    if check is not None:
        for path in paths:
            check(path)
    records = [
        (path, number, _features_of(path, number, record))
        for path in paths
        for number, record in enumerate(itertools.islice(read_records(path), LOOKED_AT))
    ]
    if not records:
        raise DataError(f"The files that match {pattern!r} contain no record.")
    names = dict.fromkeys(name for _, _, found in records for name in found)
    features = tuple(feature for name in names if (feature := _infer(name, records)) is not None)
    _check_writable(features)
    return features


def suggest_options(pattern: str) -> RunOptions:
    """Return options that read the files of a pattern and train on their features; a feature `label` is the label.

    Raises:
        DataError: As :func:`infer_features`.
        OptionsError: What the files hold is more than options may say.
    """
    features = infer_features(pattern)
    stages = (
        ReadStage(mode="interleave", shuffle_files=True),
        ShuffleStage(buffer_size=1000),
        RepeatStage(),
        BatchStage(size=32),
        ParseStage(num_parallel_calls="autotune"),
        PrefetchStage(),
    )
    workload = {
        "kind": "records",
        "pattern": pattern,
        "features": format_features(features),
        "label": suggest_label(features),
    }
    pipeline = PipelineOptions(stages=stages).model_dump(mode="json")
    return read_options({"name": "records", "workload": workload, "pipeline": pipeline})


def suggest_label(features: Sequence[RecordFeature]) -> str | None:
    """Return the name of the feature that looks like a label."""
    return LABEL if len(features) > 1 and RecordFeature(LABEL, "int64", 1) in features else None


def find_misfitting_record(
    path: Path, expected: Sequence[RecordFeature], remedy: str, check: Callable[[], None] = lambda: None
) -> DataError | None:
    """Return an error that names the first record of a file without the expected features.

    Args:
        path: The file.
        expected: Features of each record.
        remedy: What to do about it, as the end of a sentence.
        check: Called before each record; raises to end the search.
    """
    for number, record in enumerate(read_records(path)):
        check()
        try:
            found = _features_of(path, number, record)
        except DataError as error:
            return error
        for feature in expected:
            if (trouble := _trouble(feature, found.get(feature.name))) is not None:
                return DataError(f"Record {number} of {path} {trouble}; {remedy}.")
    return None


def _infer(name: str, records: Sequence[tuple[Path, int, dict[str, FoundFeature]]]) -> RecordFeature | None:
    """Return a feature; None where it is empty in every record."""
    kind, counts = None, set()
    for path, number, found in records:
        feature = found.get(name, FoundFeature(None, 0))
        counts.add(feature.count)
        if kind is not None and feature.kind not in (kind, None):
            raise DataError(
                f"The feature {name!r} is {feature.kind} in record {number} of {path}, but {kind} in earlier ones; write it "
                "with one type."
            )
        kind = kind or feature.kind
    return None if kind is None else RecordFeature(name, kind, counts.pop() if len(counts) == 1 else None)


def _check_writable(features: Sequence[RecordFeature]) -> None:
    """Refuse features that cannot be written as text and read back."""
    if len(features) > MAX_FEATURES:
        raise DataError(
            f"The records have {len(features)} features, more than {MAX_FEATURES}; list the ones you need in "
            "workload.features."
        )
    for feature in features:
        with contextlib.suppress(ValueError):
            if parse_features(str(feature)) == (feature,):
                continue
        raise DataError(
            f"The feature name {feature.name!r} cannot be written in workload.features; write records without commas and "
            "outer blanks in names, or use a module that reads your records."
        )


def _features_of(path: Path, number: int, record: bytes) -> dict[str, FoundFeature]:
    try:
        return find_features(record)
    except NoExampleError:
        raise DataError(
            f"Record {number} of {path} is not a tf.train.Example; write Examples, or use a module that reads your records."
        ) from None


def _trouble(feature: RecordFeature, found: FoundFeature | None) -> str | None:
    """Describe what is wrong with a feature of a record."""
    if feature.length is None and (found is None or found.kind is None):
        return None
    if found is None:
        return f"has no feature {feature.name!r}, which every record must hold"
    if found.kind is not None and found.kind != feature.kind:
        return f"has the feature {feature.name!r} as {found.kind}, not as {feature.kind}"
    if feature.length is not None and found.count != feature.length:
        return f"has {found.count} values of the feature {feature.name!r}, not {feature.length}"
    return None
