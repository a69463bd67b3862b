"""The functions that the images workload maps over its records: parse and augment, each per example or per batch.

Bodies are fixed text that names its numbers as module constants, so nothing a user typed is ever spliced into code;
feature names enter as literals.
"""

from pipeline_lab.pipeline.image_parse_code import IMAGE_ENDINGS, folder_parse_code, parse_code
from pipeline_lab.pipeline.workload_source import WorkloadSource
from pipeline_lab.stages.code import Code, quote, wanted
from pipeline_lab.stages.functions import AugmentStage, ViewsStage
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.read import PerFile, folder_code, read_code, read_lines
from pipeline_lab.workloads.images import ImagesWorkload

_ROTATE = '''
def rotate(image: tf.Tensor) -> tf.Tensor:
    """Rotate around the centre, by up to MAX_ROTATION either way."""
    size = image.shape[0]
    centre = (size - 1) / 2
    angle = tf.random.uniform([], -MAX_ROTATION, MAX_ROTATION)
    cosine, sine = tf.cos(angle), tf.sin(angle)
    shift_x = centre - centre * (cosine - sine)
    shift_y = centre - centre * (cosine + sine)
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
    """Rotate each image around its centre, by its own angle of up to MAX_ROTATION either way."""
    size = images.shape[1]
    centre = (size - 1) / 2
    angle = tf.random.uniform([tf.shape(images)[0]], -MAX_ROTATION, MAX_ROTATION)
    cosine, sine, zero = tf.cos(angle), tf.sin(angle), tf.zeros_like(angle)
    shift_x = centre - centre * (cosine - sine)
    shift_y = centre - centre * (cosine + sine)
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


def image_source(workload: ImagesWorkload, pipeline: PipelineOptions, *, has_probe: bool) -> WorkloadSource:
    """Write ``parse`` and ``augment``, and a reader that numbers its records where the probe is asked for."""
    is_vectorised = pipeline.is_vectorised("parse")
    views, augment = pipeline.first(ViewsStage), pipeline.first(AugmentStage)
    if workload.data == "folder":
        per_file = PerFile.FOLDER
        code = folder_code(IMAGE_ENDINGS) + folder_parse_code(workload, is_vectorised=is_vectorised)
    else:
        per_file = PerFile.PROBED if has_probe else PerFile.PLAIN
        code = read_code(per_file) + parse_code(workload, is_vectorised=is_vectorised, has_probe=has_probe)
    if views is not None:
        code += _views_code(views, has_ids=has_probe or workload.data != "files")
    if augment is not None:
        code += _augment_code(augment, is_vectorised=pipeline.is_vectorised("augment"))
    over = "over folders of images" if workload.data == "folder" else "over TFRecord files"
    written = {"read": lambda read: read_lines(read, per_file)}
    return WorkloadSource(_about(workload, has_probe=has_probe), code, written, over=over)


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


def _augment_code(stage: AugmentStage, *, is_vectorised: bool) -> Code:
    """Write ``augment`` and the functions it calls."""
    radians = f"MAX_ROTATION = math.radians({stage.rotate_degrees!r})"
    constants = {
        f"PAD = {stage.pad}": stage.pad,
        f"CROP = {stage.crop}": stage.crop,
        radians: stage.rotate_degrees,
        f"CUTOUT = {stage.cutout}": stage.cutout,
    }
    helpers = {
        _RANDOM_CROP_BATCH: is_vectorised and stage.crop,
        _RANDOM_FLIP_BATCH: is_vectorised and stage.flip,
        _ROTATE_BATCH if is_vectorised else _ROTATE: stage.rotate_degrees,
        _CUT_OUT_BATCH if is_vectorised else _CUT_OUT: stage.cutout,
    }
    main = _augment_batch(stage) if is_vectorised else _augment_example(stage)
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
