"""Archives and compressed files, sound, damaged and hostile."""

import gzip
import io
import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from pipeline_lab.errors import TraceReadError
from pipeline_lab.trace import archives
from pipeline_lab.trace.archives import expand, is_archive, unpack

CONTENT = os.urandom(5_000)


class Pipe(io.BytesIO):
    """Takes a zip like a pipe: the lengths of its entries follow them."""

    def seekable(self) -> bool:
        return False

    def seek(self, *_: int) -> int:
        raise io.UnsupportedOperation

    def tell(self) -> int:
        raise io.UnsupportedOperation


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inside = tmp_path / "inside"
    inside.mkdir()
    return inside


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def tar_of(path: Path, *entries: tuple[tarfile.TarInfo, bytes], mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as archive:
        for info, data in entries:
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def zip_of(path: Path, **files: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


@pytest.mark.parametrize("layers", [0, 1, 2, 3])
def test_compressed_up_to_three_times_reads_like_plain(tmp_path: Path, layers: int) -> None:
    data = CONTENT
    for _ in range(layers):
        data = gzip.compress(data)
    expanded = expand(write(tmp_path / "f", data))
    assert expanded.data.tobytes() == CONTENT
    assert expanded.cut == ""


def test_compressed_more_often_is_refused(tmp_path: Path) -> None:
    data = CONTENT
    for _ in range(4):
        data = gzip.compress(data)
    with pytest.raises(TraceReadError, match="more than 3 times"):
        expand(write(tmp_path / "f", data))


def test_two_compressed_files_in_a_row_are_one(tmp_path: Path) -> None:
    assert expand(write(tmp_path / "f", gzip.compress(b"ab") + gzip.compress(b"cd"))).data.tobytes() == b"abcd"


def test_a_cut_stream_gives_what_is_there(tmp_path: Path) -> None:
    packed = gzip.compress(CONTENT)
    expanded = expand(write(tmp_path / "f", packed[: len(packed) // 2]))
    assert CONTENT.startswith(expanded.data.tobytes())
    assert len(expanded.data) > 1_000
    assert "cut off" in expanded.cut


@pytest.mark.slow
def test_a_damaged_stream_gives_what_comes_before(tmp_path: Path) -> None:
    text = b"".join(b"%d " % k for k in range(200_000))
    packed = bytearray(gzip.compress(text))
    packed[-3] ^= 0xFF
    expanded = expand(write(tmp_path / "f", bytes(packed)))
    assert "damaged" in expanded.cut
    assert text.startswith(expanded.data.tobytes())


def test_nothing_in_a_stream_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(TraceReadError, match="nothing in it can be unpacked"):
        expand(write(tmp_path / "f", gzip.compress(CONTENT)[:8]))


def test_a_gzip_bomb_is_refused_before_it_fills_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "SPARE_BYTES", 1 << 20)
    bomb = write(tmp_path / "f", gzip.compress(bytes(8 << 20)))
    with pytest.raises(TraceReadError, match="refused"):
        expand(bomb)


def test_zip_and_tar_are_known_by_content(tmp_path: Path) -> None:
    info = tarfile.TarInfo("a")
    assert is_archive(zip_of(tmp_path / "z", a=b"1"))
    assert is_archive(tar_of(tmp_path / "t", (info, CONTENT), mode="w"))
    assert is_archive(tar_of(tmp_path / "tz", (info, CONTENT)))
    assert not is_archive(write(tmp_path / "g", gzip.compress(CONTENT)))
    assert not is_archive(write(tmp_path / "e", b""))


def test_archives_unpack_into_their_folder(tmp_path: Path, folder: Path) -> None:
    assert unpack(zip_of(tmp_path / "z", **{"x/a": b"1", "b": b"2"}), folder) == ""
    assert (folder / "x" / "a").read_bytes() == b"1"
    info = tarfile.TarInfo("y/c")
    assert unpack(tar_of(tmp_path / "t", (info, CONTENT)), folder) == ""
    assert (folder / "y" / "c").read_bytes() == CONTENT


@pytest.mark.parametrize("name", ["../out", "/etc/out", "a/../../out", "..\\out", "C:/out"])
def test_names_that_lead_out_are_refused(tmp_path: Path, folder: Path, name: str) -> None:
    for archive in (zip_of(tmp_path / "z", **{name: b"1"}), tar_of(tmp_path / "t", (tarfile.TarInfo(name), b"1"))):
        with pytest.raises(TraceReadError, match="outside its own folder"):
            unpack(archive, folder)
    assert not list(tmp_path.glob("**/out"))
    assert not Path("/etc/out").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
def test_links_are_refused(tmp_path: Path, folder: Path, kind: bytes) -> None:
    link = tarfile.TarInfo("l")
    link.type, link.linkname = kind, "/etc/passwd"
    with pytest.raises(TraceReadError, match="contains a link"):
        unpack(tar_of(tmp_path / "t", (link, b"")), folder)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_of_another_method_is_refused_before_it_is_unpacked(tmp_path: Path, folder: Path, method: int) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", method) as archive:
        archive.writestr("a.xplane.pb", bytes(1_000_000))
    with pytest.raises(
        TraceReadError, match=r"a\.zip is packed with a method other than deflate \('a\.xplane\.pb'\); pack it"
    ):
        unpack(tmp_path / "a.zip", folder)
    assert not list(folder.iterdir())


def test_links_in_a_zip_are_refused(tmp_path: Path, folder: Path) -> None:
    link = zipfile.ZipInfo("l")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "z", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(TraceReadError, match="contains a link"):
        unpack(tmp_path / "z", folder)


def test_devices_in_a_tar_are_left_out(tmp_path: Path, folder: Path) -> None:
    device = tarfile.TarInfo("null")
    device.type = tarfile.CHRTYPE
    unpack(tar_of(tmp_path / "t", (device, b"")), folder)
    assert not list(folder.iterdir())


def test_bombs_and_crowds_are_refused(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "SPARE_BYTES", 1 << 20)
    monkeypatch.setattr(archives, "MAX_ENTRIES", 50)
    for bomb in (
        zip_of(tmp_path / "z", a=bytes(8 << 20)),
        tar_of(tmp_path / "t", (tarfile.TarInfo("a"), bytes(8 << 20))),
    ):
        with pytest.raises(TraceReadError, match="refused"):
            unpack(bomb, folder)
    for crowd in (
        zip_of(tmp_path / "zc", **{f"f{k}": b"" for k in range(51)}),
        tar_of(tmp_path / "tc", *((tarfile.TarInfo(f"f{k}"), b"") for k in range(51))),
    ):
        with pytest.raises(TraceReadError, match="more than 50 entries"):
            unpack(crowd, folder)


def test_a_directory_of_a_million_entries_is_not_even_loaded(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crowd = zip_of(tmp_path / "z", **{f"f{k}": b"" for k in range(50)})
    monkeypatch.setattr(archives, "MAX_DIRECTORY_BYTES", 1_000)
    monkeypatch.setattr(zipfile, "ZipFile", lambda *_: pytest.fail("the directory was loaded"))
    with pytest.raises(TraceReadError, match="entries"):
        unpack(crowd, folder)


def test_a_tar_that_ends_in_its_first_file_gives_what_came(tmp_path: Path, folder: Path) -> None:
    path = tar_of(tmp_path / "a.tar", (tarfile.TarInfo("a.xplane.pb"), CONTENT), mode="w")
    path.write_bytes(path.read_bytes()[: 512 + 1_000])
    assert "a.tar is damaged" in unpack(path, folder)
    assert (folder / "a.xplane.pb").read_bytes() == CONTENT[:1_000]


def test_a_cut_tar_gives_the_files_before_the_cut(tmp_path: Path, folder: Path) -> None:
    whole = tar_of(tmp_path / "t", (tarfile.TarInfo("a"), CONTENT), (tarfile.TarInfo("b"), CONTENT[::-1])).read_bytes()
    cut = unpack(write(tmp_path / "c", whole[: len(whole) * 3 // 4]), folder)
    assert "cut off" in cut
    assert (folder / "a").read_bytes() == CONTENT


@pytest.mark.parametrize("keep", [4, 30])
def test_damaged_archives_are_a_sentence(tmp_path: Path, folder: Path, keep: int) -> None:
    whole = zip_of(tmp_path / "z", a=CONTENT).read_bytes()
    with pytest.raises(TraceReadError, match=r"\.$"):
        unpack(write(tmp_path / "c", whole[:keep]), folder)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("to_pipe", [False, True])
def test_a_zip_without_its_list_gives_what_came(tmp_path: Path, folder: Path, method: int, to_pipe: bool) -> None:
    out = Pipe() if to_pipe else io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        archive.writestr("x/a", CONTENT)
        archive.writestr("b", CONTENT[::-1])
    whole = out.getvalue()
    path = write(tmp_path / "c", whole[: whole.index(b"PK\x01\x02") - 100])
    if to_pipe and method == zipfile.ZIP_STORED:  # nothing says where such an entry ends
        with pytest.raises(TraceReadError, match="nothing in it can be unpacked"):
            unpack(path, folder)
        return
    assert "cut off" in unpack(path, folder)
    assert (folder / "x/a").read_bytes() == CONTENT
    assert CONTENT[::-1].startswith((folder / "b").read_bytes())
    assert (folder / "b").stat().st_size > 4_000


def test_names_that_lead_out_are_refused_without_the_list_too(tmp_path: Path, folder: Path) -> None:
    whole = zip_of(tmp_path / "z", **{"../a": CONTENT}).read_bytes()
    with pytest.raises(TraceReadError, match="outside its own folder"):
        unpack(write(tmp_path / "c", whole[:3000]), folder)


def test_an_entry_without_a_name_is_a_sentence(tmp_path: Path, folder: Path) -> None:
    with zipfile.ZipFile(tmp_path / "z", "w") as archive, archive.open(zipfile.ZipInfo(""), "w") as entry:
        entry.write(b"1")
    data = bytearray((tmp_path / "z").read_bytes())
    for flags in (0, 1):  # plain, encrypted
        data[data.index(b"PK\x01\x02") + 8] = flags
        with pytest.raises(TraceReadError, match="an entry without a name"):
            unpack(write(tmp_path / "z", bytes(data)), folder)


def test_nothing_is_left_in_the_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    expand(write(tmp_path / "f", gzip.compress(CONTENT)))
    assert not list(scratch.iterdir())
