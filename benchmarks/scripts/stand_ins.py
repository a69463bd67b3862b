"""Synthesized data of the shapes that published scripts download, and modules that this environment lacks.

Copied beside the patched scripts as an installed package, so that it is no code of theirs.
"""

import csv
import random
import sys
import types
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

ABSENT = [
    "matplotlib",
    "matplotlib.pyplot",
    "IPython",
    "IPython.display",
    "seaborn",
    "imageio",
    "imgaug",
    "tensorflow_docs",
    "tensorflow_docs.vis",
    "tensorflow_docs.vis.embed",
    "mpl_toolkits.axes_grid1.inset_locator",
    "ipywidgets",
    "cv2",
    "tqdm",
    "remotezip",
    "trimesh",
    "pydot",
    "pylib",
    "imlib",
]
"""Modules that draw, show or download: what they are asked for is done by nothing."""


class Nothing:
    """Takes any call, any attribute and any item, and gives itself."""

    def __getattr__(self, name: str) -> "Nothing":
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *_: Any, **__: Any) -> "Nothing":
        return self

    def __getitem__(self, _: Any) -> "Nothing":
        return self

    def __setitem__(self, _: Any, __: Any) -> None:
        return

    def __iter__(self) -> Iterator["Nothing"]:
        return iter((self, self))

    def __enter__(self) -> "Nothing":
        return self

    def __exit__(self, *_: Any) -> None:
        return


class _Absent(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing()


def _stand_in() -> None:
    for name in ABSENT:
        parts = name.split(".")
        for end in range(1, len(parts) + 1):
            whole = ".".join(parts[:end])
            if whole not in sys.modules:
                module = _Absent(whole)
                module.__path__ = []
                sys.modules[whole] = module
                if end > 1:
                    setattr(sys.modules[".".join(parts[: end - 1])], parts[end - 1], module)


_stand_in()
_RNG = np.random.default_rng(7)


# arrays


def images(count: int, size: tuple[int, ...], classes: int = 10, tests: int = 0) -> tuple[Any, Any]:
    """Return what ``load_data`` of an image data set does: bytes of pixels, and labels."""
    return tuple(
        (_RNG.integers(0, 256, (n, *size), np.uint8), _RNG.integers(0, classes, n).astype(np.int64))
        for n in (count, tests or max(1, count // 6))
    )


def tokens(count: int, length: int, words: int, classes: int = 2) -> tuple[Any, Any]:
    """Return lists of tokens of various lengths, and labels."""
    made = []
    for n in (count, count // 4):
        rows = [list(map(int, _RNG.integers(1, words, int(_RNG.integers(length // 4, length))))) for _ in range(n)]
        made.append((rows, _RNG.integers(0, classes, n)))
    return tuple(made)


# files


def _pictures(width: int, height: int, count: int = 8) -> list[Any]:
    from PIL import Image

    found = []
    for _ in range(count):
        rough = _RNG.integers(0, 256, (height // 8, width // 8, 3), np.uint8)
        smooth = np.asarray(Image.fromarray(rough).resize((width, height), Image.Resampling.BICUBIC), np.int16)
        noisy = np.clip(smooth + _RNG.integers(-12, 13, smooth.shape), 0, 255).astype(np.uint8)
        found.append(Image.fromarray(noisy))
    return found


def picture_folder(folder: str, count: int, size: tuple[int, int], suffix: str = "jpg", name: str = "{}") -> None:
    """Write pictures into a folder.

    Args:
        folder: Is made.
        count: Of pictures.
        size: Width and height.
        suffix: ``jpg`` or ``png``.
        name: Of each file, with a place for its number.
    """
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    pictures = _pictures(*size)
    for number in range(count):
        pictures[number % len(pictures)].save(path / f"{name.format(number + 1)}.{suffix}", quality=90)


def picture_folders(root: str, names: tuple[str, ...], each: int, size: tuple[int, int]) -> None:
    for name in names:
        picture_folder(f"{root}/{name}", each, size)


def mask_folder(folder: str, count: int, size: tuple[int, int]) -> None:
    """Write masks of three classes, 1 to 3, as PNG."""
    from PIL import Image

    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    rough = Image.fromarray(_RNG.integers(1, 4, (size[1] // 16, size[0] // 16), np.uint8))
    mask = rough.resize(size, Image.Resampling.NEAREST)
    for number in range(count):
        mask.save(path / f"{number + 1}.png")


def captchas(folder: str, count: int) -> None:
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    pictures = _pictures(200, 56)
    letters = "2345678bcdefgmnpwxy"
    for number in range(count):
        label = "".join(letters[int(i)] for i in _RNG.integers(0, len(letters), 5))
        pictures[number % 8].save(path / f"{label}.png")


def wave_folders(root: str, names: tuple[str, ...], each: int, seconds: float = 1.0, rate: int = 16000) -> None:
    for name in names:
        path = Path(root) / name
        path.mkdir(parents=True, exist_ok=True)
        for number in range(each):
            with wave.open(str(path / f"{number:05}.wav"), "wb") as file:
                file.setnchannels(1)
                file.setsampwidth(2)
                file.setframerate(rate)
                file.writeframes(_RNG.integers(-9000, 9000, int(seconds * rate), np.int16).tobytes())


_WORDS = ["".join(random.Random(i).choices("abcdefghijklmnoprstuvw", k=3 + i % 7)) for i in range(3000)]


def sentence(words: int) -> str:
    return " ".join(_WORDS[int(i)] for i in np.minimum(_RNG.zipf(1.3, words), len(_WORDS) - 1))


def speech(root: str, count: int) -> None:
    """Write what a corpus of read sentences has: ``wavs`` of about two seconds, and ``metadata.csv`` with their words."""
    wave_folders(root, ("wavs",), count, seconds=2.0, rate=22050)
    lines = []
    for file in sorted(Path(root, "wavs").glob("[0-9]*.wav")):
        said = sentence(6)
        lines.append(f"{file.rename(file.with_name(f'LJ{file.name}')).stem}|{said}|{said}\n")
    (Path(root) / "metadata.csv").write_text("".join(lines), encoding="utf-8")


def word_pictures(root: str, count: int) -> None:
    """Write pictures of single words, in folders of forms, and ``words.txt``, which names them."""
    pictures, lines = _pictures(240, 64), []
    for number in range(count):
        form = f"a{number // 100:02}-{number // 10 % 10:03}"
        folder = Path(root) / "words" / form.split("-")[0] / form
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{form}-{number % 10:02}"
        pictures[number % 8].convert("L").save(folder / f"{name}.png")
        lines.append(f"{name} ok 154 1 1 240 64 AT {sentence(1)}\n")
    (Path(root) / "words.txt").write_text("".join(lines), encoding="utf-8")


def captions(path: str, count: int) -> None:
    """Write five captions for each picture of a folder."""
    lines = [f"{number + 1}.jpg#{which}\t{sentence(9)}\n" for number in range(count) for which in range(5)]
    Path(path).write_text("".join(lines), encoding="utf-8")


def facade_folder(folder: str, count: int, size: tuple[int, int]) -> None:
    """Write pictures of houses, each with the classes of its parts as colours and as numbers."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    pictures = _pictures(*size)
    for number in range(count):
        picture, path = pictures[number % 8], Path(folder, f"{number}.jpg")
        picture.save(path, "JPEG", quality=90)
        picture.save(path.with_suffix(".png"))
        picture.convert("L").point(lambda value: value % 12).save(path.with_suffix(".bmp"))


def depth_folder(folder: str, count: int, size: tuple[int, int]) -> None:
    """Write pictures with a map of depths and one of where these are known, as NumPy files."""
    picture_folder(folder, count, size, "png", "{:03}")
    for number in range(count):
        depth = _RNG.uniform(0.5, 20.0, (size[1], size[0], 1)).astype(np.float32)
        np.save(Path(folder) / f"{number + 1:03}_depth.npy", depth)
        np.save(Path(folder) / f"{number + 1:03}_depth_mask.npy", np.ones(size[::-1], np.float32))


def text_folders(root: str, names: tuple[str, ...], each: int, words: int) -> None:
    for name in names:
        path = Path(root) / name
        path.mkdir(parents=True, exist_ok=True)
        for number in range(each):
            (path / f"{number}_1.txt").write_text(sentence(words) + "<br />" + sentence(5), encoding="utf-8")


def pairs_file(path: str, count: int) -> None:
    """Write lines of two sentences with a tab between."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text("".join(f"{sentence(7)}\t{sentence(8)}\n" for _ in range(count)), encoding="utf-8")


def table(path: str, count: int, columns: dict[str, Any]) -> None:
    """Write a CSV file.

    Args:
        path: Of the file.
        count: Of rows.
        columns: For each either a list to draw from, or ``(low, high)`` of whole or broken numbers.
    """
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    made = []
    for values in columns.values():
        if isinstance(values, list):
            made.append([values[int(i)] for i in _RNG.integers(0, len(values), count)])
        elif isinstance(values[0], int):
            made.append(_RNG.integers(values[0], values[1] + 1, count).tolist())
        else:
            made.append(np.round(_RNG.uniform(values[0], values[1], count), 3).tolist())
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*made, strict=True))


def picture_records(pattern: str, files: int, each: int, size: tuple[int, int], **features: Any) -> None:
    """Write TFRecord files of encoded pictures.

    Args:
        pattern: Path with a place for the file's number.
        files: How many.
        each: Pictures in each.
        size: Width and height.
        features: Name of each feature and what makes it: ``"jpeg"``, ``(low, high)`` or a list of fixed values.
    """
    import io

    import tensorflow as tf

    encoded = []
    for picture in _pictures(*size):
        buffer = io.BytesIO()
        picture.save(buffer, "JPEG", quality=90)
        encoded.append(buffer.getvalue())
    for file in range(files):
        path = Path(pattern.format(file))
        path.parent.mkdir(parents=True, exist_ok=True)
        with tf.io.TFRecordWriter(str(path)) as writer:
            for number in range(each):
                made = {name: _feature(kind, encoded[number % 8]) for name, kind in features.items()}
                writer.write(tf.train.Example(features=tf.train.Features(feature=made)).SerializeToString())


def _feature(kind: Any, picture: bytes) -> Any:
    import tensorflow as tf

    if kind == "jpeg":
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[picture]))
    if isinstance(kind, tuple):
        value = int(_RNG.integers(kind[0], kind[1] + 1))
        return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))
    if isinstance(kind[0], float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=kind))
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value.encode() for value in kind]))


def decoded_pictures(pattern: str, *, with_mask: bool = False) -> Any:
    """Return what ``tfds.load`` does for pictures: a dataset that reads and decodes records."""
    import tensorflow as tf

    form = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}

    def decode(record: Any) -> Any:
        example = tf.io.parse_single_example(record, form)
        picture = tf.io.decode_jpeg(example["image"], channels=3)
        if with_mask:
            return {"image": picture, "segmentation_mask": tf.cast(picture[:, :, :1] % 3 + 1, tf.uint8)}
        return picture, example["label"]

    files = tf.data.Dataset.list_files(pattern, shuffle=False)
    records = files.interleave(tf.data.TFRecordDataset, cycle_length=16, num_parallel_calls=tf.data.AUTOTUNE)
    return records.map(decode, num_parallel_calls=tf.data.AUTOTUNE)


def table_split(path: str, part: float) -> list[Any]:
    """Return two datasets of rows, one example each, of a file whose last column is the label: ``part`` of them, and the others."""
    import tensorflow as tf

    rows = np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.float32)
    cut = int(part * len(rows))
    return [
        tf.data.Dataset.from_tensor_slices((some[:, :-1], some[:, -1].astype(np.int64)))
        for some in (rows[:cut], rows[cut:])
    ]


def forest_table(path: str, count: int) -> None:
    """Write rows of numbers with two one-hot groups, without a header."""
    numbers = _RNG.integers(0, 4000, (count, 10))
    areas, soils = np.eye(4, dtype=int)[_RNG.integers(0, 4, count)], np.eye(40, dtype=int)[_RNG.integers(0, 40, count)]
    rows = np.hstack([numbers, areas, soils, _RNG.integers(1, 8, (count, 1))])
    np.savetxt(path, rows, fmt="%d", delimiter=",")


# what scripts call


def upsample(filters: int, size: int) -> Any:
    import keras

    return keras.Sequential(
        [
            keras.layers.Conv2DTranspose(filters, size, strides=2, padding="same", use_bias=False),
            keras.layers.BatchNormalization(),
            keras.layers.ReLU(),
        ]
    )


class RandAugment:
    """Augment images one by one in Python, as imgaug does."""

    def __init__(self, n: int, m: int) -> None:
        self.n, self.m = n, m

    def __call__(self, images: Any) -> Any:
        from PIL import Image, ImageEnhance, ImageOps

        made = []
        for pixels in images:
            picture = Image.fromarray(pixels)
            for _ in range(self.n):
                turn = random.random()
                if turn < 0.4:
                    picture = picture.rotate(self.m * random.random(), Image.Resampling.BILINEAR)
                elif turn < 0.7:
                    picture = ImageEnhance.Contrast(picture).enhance(1.0 + self.m * 0.05 * random.random())
                else:
                    picture = ImageOps.autocontrast(picture)
            made.append(np.asarray(picture))
        return np.stack(made)


def video_folders(root: str, names: tuple[str, ...], each: int) -> None:
    """Write files that stand for videos: their frames are made when they are read."""
    for name in names:
        path = Path(root) / name
        path.mkdir(parents=True, exist_ok=True)
        for number in range(each):
            (path / f"{number + 1}.avi").write_bytes(bytes(200_000))


class Video:
    """Reads frames as ``cv2.VideoCapture`` does."""

    def __init__(self, path: str) -> None:
        self._frame = np.frombuffer(Path(path).read_bytes()[: 120 * 160 * 3], np.uint8).reshape(120, 160, 3)

    def get(self, _: int) -> float:
        return 300.0

    def set(self, *_: Any) -> None:
        return

    def release(self) -> None:
        return

    def read(self) -> tuple[bool, Any]:
        return True, self._frame.copy()
