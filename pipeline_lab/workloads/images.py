"""Images in TFRecord files, or in a folder with a subfolder for each class; parsed, cut into views and augmented per
example or per batch.

Bodies of functions are fixed text that names its numbers as module constants, so nothing a user typed is ever spliced
into code; feature names enter as literals.
"""

from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from pipeline_lab.fields import FileSizes
from pipeline_lab.stages.code import Code, quote, wanted
from pipeline_lab.stages.functions import AugmentStage, ViewsStage
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.read import PerFile, folder_code, read_code, read_lines
from pipeline_lab.stages.stage_values import CHANNELS, Element, Position, Remark
from pipeline_lab.workloads.workload import (
    PATH_BYTES,
    RECORD_FRAME_BYTES,
    Workload,
    WorkloadSource,
    check_folder,
    class_by_class,
)

_JPEG_SHARE = {"digits": 0.33, "cifar10": 0.45, "random": 0.85}
"""Size of a JPEG over that of its pixels: drawn digits compress well, noise does not; of photographs, a rough guess."""


class ImagesWorkload(Workload):
    """Train a small residual network on images in TFRecord files, or in a folder."""

    kind: Literal["images"] = "images"
    data: Literal["digits", "cifar10", "random", "files", "folder"] = "digits"
    """``digits``: scikit-learn's 1,797 real digits, scaled up; ``cifar10``: 50,000 photographs, downloaded by Keras;
    ``random``: noise images; ``files``: your TFRecords; ``folder``: your JPEG and PNG files, a subfolder for each class."""
    image_size: int = Field(32, ge=8, le=1024)
    """Height and width of the images as they leave `parse`, pixels; your own are scaled to it."""
    examples_per_file: FileSizes = (512,) * 8
    pattern: str | None = Field(None, max_length=4096)
    """For ``data = files``: a glob of TFRecord files that hold `image` (encoded) and `label` (int64)."""
    folder: str | None = Field(None, max_length=4096)
    """For ``data = folder``: the folder of the subfolders."""
    image_feature: str = Field("image", min_length=1, max_length=200)
    label_feature: str = Field("label", min_length=1, max_length=200)
    classes: int = Field(10, ge=2, le=100_000)
    """Outputs of the network: more than the largest label, at least as many as there are subfolders."""

    matters: ClassVar = ("data", "image_size", "examples_per_file", "pattern", "folder")
    own_stages: ClassVar = ("parse", "views", "augment")
    optional_stages: ClassVar = frozenset({"views"})
    shown_with: ClassVar = {
        "folder": ("data", ("folder",)),
        "pattern": ("data", ("files",)),
        "image_feature": ("data", ("files",)),
        "label_feature": ("data", ("files",)),
        "examples_per_file": ("data", ("digits", "cifar10", "random")),
    }
    step_options: ClassVar = frozenset({"precision", "xla", "accumulate", "replicas"})

    def source(self, pipeline: PipelineOptions, *, has_probe: bool) -> WorkloadSource:
        is_vectorized = pipeline.is_vectorized("parse")
        views, augment = pipeline.first(ViewsStage), pipeline.first(AugmentStage)
        if self.data == "folder":
            per_file = PerFile.FOLDER
            code = folder_code(IMAGE_ENDINGS) + folder_parse_code(self, is_vectorized=is_vectorized)
        else:
            per_file = PerFile.PROBED if has_probe else PerFile.PLAIN
            code = read_code(per_file) + parse_code(self, is_vectorized=is_vectorized, has_probe=has_probe)
        if views is not None:
            code += _views_code(views, has_ids=has_probe or self.data != "files")
        if augment is not None:
            code += _augment_code(augment, is_vectorized=pipeline.is_vectorized("augment"))
        over = "over folders of images" if self.data == "folder" else "over TFRecord files"
        written = {"read": lambda read: read_lines(read, per_file)}
        return WorkloadSource(_about(self, has_probe=has_probe), code, written, over=over)

    def check(self, pipeline: PipelineOptions) -> None:
        elements = (self.record(), *pipeline.elements(self))
        for stage, element in zip(pipeline.stages, elements, strict=False):
            stage.check_element(element)

    @model_validator(mode="after")
    def _places_fit_the_data(self) -> "ImagesWorkload":
        check_folder(self.data, self.folder)
        if self.data == "files" and not self.pattern:
            raise ValueError("data = files needs a pattern, such as /data/train-*.tfrecord")
        if self.data != "files" and self.pattern:
            raise ValueError(f"a pattern only applies to data = files, not to data = {self.data}; remove one of them")
        return self

    @property
    def file_sizes(self) -> tuple[int, ...] | None:
        return self.examples_per_file if self.is_made else None

    @property
    def users_pattern(self) -> str | None:
        return self.pattern

    @property
    def users_folder(self) -> str | None:
        return self.folder

    @property
    def needs_probe(self) -> bool:
        return self.data == "files"

    @property
    def is_made(self) -> bool:
        """Say whether the lab writes the records, with an id in each."""
        return self.data in ("digits", "cifar10", "random")

    @property
    def record_bytes(self) -> int | None:
        if self.data == "folder":
            return PATH_BYTES
        if self.data == "files":
            return None
        return round(_JPEG_SHARE[self.data] * CHANNELS * self.image_size**2) + RECORD_FRAME_BYTES

    def record(self) -> Element:
        return Element(1, self.record_bytes, is_decoded=False, image_size=self.image_size)

    def apply(self, stage: str, element: Element) -> Element:
        return element.as_pixels(self.image_size, 1) if stage == "parse" else element

    def remarks(self, places: Sequence[Position]) -> Iterator[Remark]:
        return class_by_class(places) if self.data == "folder" else iter(())


IMAGE_ENDINGS = (".jpg", ".jpeg", ".png", ".JPG", ".JPEG", ".PNG")
"""Of the files that hold images."""

_DECODE_OWN = '''
def decode(encoded: tf.Tensor) -> tf.Tensor:
    """Decode one JPEG image, uint8 (IMAGE_SIZE, IMAGE_SIZE, 3)."""
    return tf.ensure_shape(tf.io.decode_jpeg(encoded, channels=3), [IMAGE_SIZE, IMAGE_SIZE, 3])
'''

_DECODE_ANY = '''
def decode(encoded: tf.Tensor) -> tf.Tensor:
    """Decode one image of any size, uint8 (IMAGE_SIZE, IMAGE_SIZE, 3)."""
    image = tf.io.decode_image(encoded, channels=3, expand_animations=False)
    image = tf.image.resize(image, [IMAGE_SIZE, IMAGE_SIZE])
    return tf.cast(tf.round(image), tf.uint8)
'''

_PARSE_PATH = '''
def parse(file: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Read and decode the file of one image."""
    image = decode(tf.io.read_file(file["path"]))
    return {"image": image, "label": file["label"], "id": file["id"]}
'''

_PARSE_PATHS = '''
def parse(files: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Read and decode the files of a batch of images."""
    decoded = tf.TensorSpec([IMAGE_SIZE, IMAGE_SIZE, 3], tf.uint8)
    image = tf.map_fn(
        lambda path: decode(tf.io.read_file(path)), files["path"], fn_output_signature=decoded
    )
    return {"image": image, "label": files["label"], "id": files["id"]}
'''


def folder_parse_code(workload: ImagesWorkload, *, is_vectorized: bool) -> Code:
    """Write ``decode`` and ``parse`` for images that are files of their own."""
    parse = _PARSE_PATHS if is_vectorized else _PARSE_PATH
    return Code(constants=(f"IMAGE_SIZE = {workload.image_size}",), functions=(_DECODE_ANY.strip(), parse.strip()))


def parse_code(workload: ImagesWorkload, *, is_vectorized: bool, has_probe: bool) -> Code:
    """Write ``decode`` and ``parse``."""
    own = workload.data != "files"
    image, label = ('"image"', '"label"') if own else (quote(workload.image_feature), quote(workload.label_feature))
    constants = [
        f"IMAGE_SIZE = {workload.image_size}",
        "FEATURES = {",
        f"    {image}: tf.io.FixedLenFeature([], tf.string),",
        f"    {label}: tf.io.FixedLenFeature([], tf.int64),",
        *(['    "id": tf.io.FixedLenFeature([], tf.int64),'] if own else []),
        "}",
    ]
    decode = _DECODE_OWN if own else _DECODE_ANY
    parse = _parse_function(image, label, own=own, is_vectorized=is_vectorized, has_probe=has_probe)
    return Code(constants=tuple(constants), functions=(decode.strip(), parse))


def _parse_function(image: str, label: str, *, own: bool, is_vectorized: bool, has_probe: bool) -> str:
    argument = (
        "element: dict[str, tf.Tensor]" if has_probe else "records: tf.Tensor" if is_vectorized else "record: tf.Tensor"
    )
    records = 'element["record"]' if has_probe else argument.partition(":")[0]
    fields = [f'"label": example[{label}]']
    fields += ['"id": example["id"]'] if own else ['"id": element["id"]'] if has_probe else []
    if is_vectorized:
        body = [
            '    """Decode a batch of records into images and labels."""',
            f"    example = tf.io.parse_example({records}, FEATURES)",
            "    decoded = tf.TensorSpec([IMAGE_SIZE, IMAGE_SIZE, 3], tf.uint8)",
            f"    image = tf.map_fn(decode, example[{image}], fn_output_signature=decoded)",
        ]
    else:
        body = [
            '    """Decode one record into an image and its label."""',
            f"    example = tf.io.parse_single_example({records}, FEATURES)",
            f"    image = decode(example[{image}])",
        ]
    result = '    return {"image": image, ' + ", ".join(fields) + "}"
    return "\n".join([f"def parse({argument}) -> dict[str, tf.Tensor]:", *body, result])


_ROTATE = '''
def rotate(image: tf.Tensor) -> tf.Tensor:
    """Rotate around the center, by up to MAX_ROTATION either way."""
    size = image.shape[0]
    center = (size - 1) / 2
    angle = tf.random.uniform([], -MAX_ROTATION, MAX_ROTATION)
    cosine, sine = tf.cos(angle), tf.sin(angle)
    shift_x = center - center * (cosine - sine)
    shift_y = center - center * (cosine + sine)
    rotated = tf.raw_ops.ImageProjectiveTransformV3(
        images=image[tf.newaxis],
        transforms=tf.stack([cosine, -sine, shift_x, sine, cosine, shift_y, 0.0, 0.0])[tf.newaxis],
        output_shape=[size, size],
        fill_value=0.0,
        interpolation="BILINEAR",
    )
    return rotated[0]
'''

_ROTATE_BATCH = '''
def rotate(images: tf.Tensor) -> tf.Tensor:
    """Rotate each image around its center, by its own angle of up to MAX_ROTATION either way."""
    size = images.shape[1]
    center = (size - 1) / 2
    angle = tf.random.uniform([tf.shape(images)[0]], -MAX_ROTATION, MAX_ROTATION)
    cosine, sine, zero = tf.cos(angle), tf.sin(angle), tf.zeros_like(angle)
    shift_x = center - center * (cosine - sine)
    shift_y = center - center * (cosine + sine)
    return tf.raw_ops.ImageProjectiveTransformV3(
        images=images,
        transforms=tf.stack([cosine, -sine, shift_x, sine, cosine, shift_y, zero, zero], axis=1),
        output_shape=[size, size],
        fill_value=0.0,
        interpolation="BILINEAR",
    )
'''

_CUT_OUT = '''
def cut_out(image: tf.Tensor) -> tf.Tensor:
    """Set a square of CUTOUT pixels to zero, at a random place."""
    size = image.shape[0]
    top = tf.random.uniform([], maxval=size - CUTOUT + 1, dtype=tf.int32)
    left = tf.random.uniform([], maxval=size - CUTOUT + 1, dtype=tf.int32)
    row, column = tf.range(size)[:, tf.newaxis], tf.range(size)[tf.newaxis, :]
    hole = (row >= top) & (row < top + CUTOUT) & (column >= left) & (column < left + CUTOUT)
    return tf.where(hole[:, :, tf.newaxis], 0.0, image)
'''

_CUT_OUT_BATCH = '''
def cut_out(images: tf.Tensor) -> tf.Tensor:
    """Set a square of CUTOUT pixels to zero, at a random place in each image."""
    count, size = tf.shape(images)[0], images.shape[1]
    top = tf.random.uniform([count, 1, 1], maxval=size - CUTOUT + 1, dtype=tf.int32)
    left = tf.random.uniform([count, 1, 1], maxval=size - CUTOUT + 1, dtype=tf.int32)
    row, column = tf.range(size)[:, tf.newaxis], tf.range(size)[tf.newaxis, :]
    hole = (row >= top) & (row < top + CUTOUT) & (column >= left) & (column < left + CUTOUT)
    return tf.where(hole[..., tf.newaxis], 0.0, images)
'''

_RANDOM_CROP_BATCH = '''
def random_crop(images: tf.Tensor) -> tf.Tensor:
    """Take CROP × CROP pixels from a random place in each image."""
    count, size = tf.shape(images)[0], images.shape[1]
    top = tf.random.uniform([count, 1], maxval=size - CROP + 1, dtype=tf.int32)
    left = tf.random.uniform([count, 1], maxval=size - CROP + 1, dtype=tf.int32)
    images = tf.gather(images, top + tf.range(CROP), axis=1, batch_dims=1)
    return tf.gather(images, left + tf.range(CROP), axis=2, batch_dims=1)
'''

_RANDOM_FLIP_BATCH = '''
def random_flip(images: tf.Tensor) -> tf.Tensor:
    """Mirror about half of the images left to right."""
    is_flipped = tf.random.uniform([tf.shape(images)[0], 1, 1, 1]) < 0.5
    return tf.where(is_flipped, tf.reverse(images, axis=[2]), images)
'''


_VIEWS = '''
def views(example: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Cut CROPS views out of an image at random places; each is an example, and their ids follow each other."""
    size = [VIEW_SIZE, VIEW_SIZE, 3]
    image = tf.stack([tf.image.random_crop(example["image"], size) for _ in range(CROPS)])
'''

_MIRRORED = """\
    image = tf.concat([image, tf.reverse(image, axis=[2])], axis=0)
"""

_EACH_VIEW = """\
    label = tf.fill([VIEWS], example["label"])
"""

_VIEW_IDS = """\
    file, record = example["id"] // 2**40, example["id"] % 2**40
    identity = file * 2**40 + record * VIEWS + tf.range(VIEWS, dtype=tf.int64)
    return {"image": image, "label": label, "id": identity}
"""

_WITHOUT_IDS = """\
    return {"image": image, "label": label}
"""


def _about(workload: ImagesWorkload, *, has_probe: bool) -> tuple[str, ...]:
    has_pattern = workload.data == "files"
    names = '"image", "label"' if has_pattern and not has_probe else '"image", "label", "id"'
    lines = {
        f"files = sorted(tf.io.gfile.glob({quote(workload.pattern or '')}))": has_pattern,
        "files are folders, one for each class, with the files of its images.": workload.data == "folder",
        f"Elements are batches of {{{names}}}.": True,
        "With the sample probe: each example carries file index × 2**40 + record number as its id.": has_probe,
    }
    return wanted(lines)


def _views_code(stage: ViewsStage, *, has_ids: bool) -> Code:
    constants = (f"VIEW_SIZE = {stage.size}", f"CROPS = {stage.crops}", f"VIEWS = {stage.views}")
    parts = {_VIEWS.lstrip(): True, _MIRRORED: stage.mirror, _EACH_VIEW: True}
    body = "".join([*wanted(parts), _VIEW_IDS if has_ids else _WITHOUT_IDS])
    return Code(constants=constants, functions=(body.rstrip(),))


def _augment_code(stage: AugmentStage, *, is_vectorized: bool) -> Code:
    """Write ``augment`` and the functions it calls."""
    radians = f"MAX_ROTATION = math.radians({stage.rotate_degrees!r})"
    constants = {
        f"PAD = {stage.pad}": stage.pad,
        f"CROP = {stage.crop}": stage.crop,
        radians: stage.rotate_degrees,
        f"CUTOUT = {stage.cutout}": stage.cutout,
    }
    helpers = {
        _RANDOM_CROP_BATCH: is_vectorized and stage.crop,
        _RANDOM_FLIP_BATCH: is_vectorized and stage.flip,
        _ROTATE_BATCH if is_vectorized else _ROTATE: stage.rotate_degrees,
        _CUT_OUT_BATCH if is_vectorized else _CUT_OUT: stage.cutout,
    }
    main = _augment_batch(stage) if is_vectorized else _augment_example(stage)
    return Code(
        imports=("import math",) if stage.rotate_degrees else (),
        constants=wanted(constants),
        functions=(*(text.strip() for text in wanted(helpers)), main),
    )


def _augment_example(stage: AugmentStage) -> str:
    steps = {
        "tf.pad(image, [[PAD, PAD], [PAD, PAD], [0, 0]])": stage.pad,
        "tf.image.random_crop(image, [CROP, CROP, 3])": stage.crop,
        "tf.image.random_flip_left_right(image)": stage.flip,
        "rotate(image)": stage.rotate_degrees,
        "cut_out(image)": stage.cutout,
        "tf.image.per_image_standardization(image)": stage.normalise,
    }
    return "\n".join(
        [
            "def augment(example: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:",
            '    """Change one image at random."""',
            '    image = tf.cast(example["image"], tf.float32)',
            *(f"    image = {step}" for step in wanted(steps)),
            '    return {**example, "image": image}',
        ]
    )


def _augment_batch(stage: AugmentStage) -> str:
    steps = {
        "tf.pad(images, [[0, 0], [PAD, PAD], [PAD, PAD], [0, 0]])": stage.pad,
        "random_crop(images)": stage.crop,
        "random_flip(images)": stage.flip,
        "rotate(images)": stage.rotate_degrees,
        "cut_out(images)": stage.cutout,
        "tf.image.per_image_standardization(images)": stage.normalise,
    }
    return "\n".join(
        [
            "def augment(batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:",
            '    """Change each image of a batch at random, on its own."""',
            '    images = tf.cast(batch["image"], tf.float32)',
            *(f"    images = {step}" for step in wanted(steps)),
            '    return {**batch, "image": images}',
        ]
    )
