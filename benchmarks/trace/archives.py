"""Archives around captures, those too that no honest program writes."""

import gzip
import io
import random
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Mapping

from benchmarks.trace.made_files import small_space

SESSION = "log/plugins/profile/w"

Pack = Callable[[Mapping[str, bytes]], bytes]


def zip_of(members: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


def tar_of(members: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


PACKERS: dict[str, Pack] = {
    "zip": zip_of,
    "tar": tar_of,
    "tar.gz": lambda members: gzip.compress(tar_of(members), 1),
}


def bomb() -> bytes:
    """Return 160 MB of nothing as gzip, made in blocks: the memory of the fuzzer itself is measured, too."""
    packer = zlib.compressobj(9, wbits=31)
    return b"".join([packer.compress(bytes(1 << 20)) for _ in range(160)]) + packer.flush()


_HARMFUL_NAMES = (
    "../../outside.xplane.pb",
    "log/../../outside.xplane.pb",
    "/etc/outside.xplane.pb",
    "C:\\outside.xplane.pb",
    "..\\outside.xplane.pb",
    "\\\\server\\share\\h.xplane.pb",
    "log",
    "log/",
    "",
    ".",
    "./",
    "log/h.xplane.pb/inner.xplane.pb",
    f"{SESSION}/h.xplane.pb",
    "log/" + "x" * 300 + ".xplane.pb",
    "log/" + "d/" * 2000 + "h.xplane.pb",
    "log/new\nline\x1b[31m.xplane.pb",
    "log/\udcff\udcfe.xplane.pb",
    "log/\u202egnp.xplane.pb",
    "CON",
    "run.json",
    "inner.zip",
)
_TYPES = (tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE)


def hostile_archive(seed: int) -> tuple[str, bytes]:
    """Return name and bytes of an archive that no honest program writes."""
    chance = random.Random(seed)
    names = [chance.choice(_HARMFUL_NAMES) for _ in range(chance.randrange(1, 5))]
    contents = [_harmful_content(chance) for _ in names]
    if chance.random() < 0.5:
        return "hostile.zip", _hostile_zip(chance, names, contents)
    data = _hostile_tar(chance, names, contents)
    return ("hostile.tar.gz", gzip.compress(data, 1)) if chance.random() < 0.5 else ("hostile.tar", data)


def _harmful_content(chance: random.Random) -> bytes:
    kinds = (
        b"",
        bytes(100_000),
        small_space(),
        zip_of({"h.xplane.pb": small_space()}),
        gzip.compress(bytes(2_000_000)),
    )
    return chance.choice(kinds)


def _hostile_zip(chance: random.Random, names: list[str], contents: list[bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(
        out, "w", chance.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED, zipfile.ZIP_LZMA))
    ) as archive:
        for name, content in zip(names, contents, strict=True):
            info = zipfile.ZipInfo(name.encode("utf-8", "replace").decode())
            info.compress_type = archive.compression
            if chance.random() < 0.2:
                info.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(info, content)
    data = bytearray(out.getvalue())
    if chance.random() < 0.2:  # a length, a flag or a method that is not true
        at = data.rfind(b"PK\x01\x02") + chance.randrange(4, 46)
        data[at : at + 2] = chance.choice((b"\xff\xff", b"\x01\x00", b"\x63\x00"))
    return bytes(data)


def _hostile_tar(chance: random.Random, names: list[str], contents: list[bytes]) -> bytes:
    out = io.BytesIO()
    form = chance.choice((tarfile.GNU_FORMAT, tarfile.PAX_FORMAT))
    with tarfile.open(fileobj=out, mode="w", format=form, errors="surrogateescape") as archive:
        for name, content in zip(names, contents, strict=True):
            info = tarfile.TarInfo(name)
            info.type = chance.choice(_TYPES) if chance.random() < 0.4 else tarfile.REGTYPE
            info.linkname = chance.choice(names) if info.type in (tarfile.SYMTYPE, tarfile.LNKTYPE) else ""
            info.size = len(content) if info.isreg() else 0
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()
