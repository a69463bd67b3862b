import gzip
from pathlib import Path

import pytest

from pipeline_lab.errors import DataError
from pipeline_lab.runs.data_files.tfrecord import HEADER, count_records, masked_crc, read_records


def write_records(path: Path, records: list[bytes]) -> Path:
    frames = [_frame(record) for record in records]
    path.write_bytes(b"".join(frames))
    return path


def _frame(record: bytes) -> bytes:
    length = len(record).to_bytes(8, "little")
    return HEADER.pack(len(record), masked_crc(length)) + record + masked_crc(record).to_bytes(4, "little")


def test_the_checksum_is_the_one_of_the_format() -> None:
    assert masked_crc(b"123456789") == ((0xE3069283 >> 15 | 0xE3069283 << 17) + 0xA282EAD8) & 0xFFFFFFFF


def test_records_of_any_length_are_counted(tmp_path: Path) -> None:
    assert count_records(write_records(tmp_path / "a", [b"", b"x", b"y" * 1000])) == 3


def test_records_are_read_in_their_order(tmp_path: Path) -> None:
    path = write_records(tmp_path / "a", [b"", b"x", b"y" * 1000])
    assert list(read_records(path)) == [b"", b"x", b"y" * 1000]
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match="a ends in the middle of record 2"):
        list(read_records(path))
    path.write_bytes(b"not a TFRecord file")
    with pytest.raises(DataError, match="is not a TFRecord file"):
        list(read_records(path))


@pytest.mark.parametrize("length", [2**62, 2**64 - 1])
def test_a_length_beyond_the_file_is_not_asked_for(tmp_path: Path, length: int) -> None:
    path = write_records(tmp_path / "a", [b"one"])
    with path.open("ab") as file:
        file.write(HEADER.pack(length, masked_crc(length.to_bytes(8, "little"))))
    with pytest.raises(DataError, match="a ends in the middle of record 1"):
        list(read_records(path))


def test_an_empty_file_holds_no_record(tmp_path: Path) -> None:
    assert count_records(write_records(tmp_path / "a", [])) == 0


@pytest.mark.parametrize("missing", [1, 4, 7, 17])
def test_a_file_that_ends_early_is_named_with_its_record(tmp_path: Path, missing: int) -> None:
    path = write_records(tmp_path / "a.tfrecord", [b"one", b"two"])  # each 19 bytes
    path.write_bytes(path.read_bytes()[:-missing])
    with pytest.raises(DataError, match=r"a\.tfrecord ends in the middle of record 1"):
        count_records(path)


def test_a_damaged_length_is_named_with_its_record(tmp_path: Path) -> None:
    path = write_records(tmp_path / "a.tfrecord", [b"one", b"two"])
    content = bytearray(path.read_bytes())
    content[19] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"a\.tfrecord is damaged at record 1"):
        count_records(path)


def test_something_else_is_no_tfrecord_file(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b,c\n" * 10)
    with pytest.raises(DataError, match=r"a\.csv is not a TFRecord file"):
        count_records(tmp_path / "a.csv")


def test_a_compressed_file_is_called_so(tmp_path: Path) -> None:
    path = write_records(tmp_path / "a", [b"one"] * 9)
    path.write_bytes(gzip.compress(path.read_bytes()))
    with pytest.raises(DataError, match="is compressed"):
        count_records(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="gone: No such file"):
        count_records(tmp_path / "gone")
