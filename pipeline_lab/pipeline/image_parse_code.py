"""The function of the images workload that turns records, or files, into pixels; per example or per batch."""

from pipeline_lab.stages.code import Code, quote
from pipeline_lab.workloads.images import ImagesWorkload

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


def folder_parse_code(workload: ImagesWorkload, *, is_vectorised: bool) -> Code:
    """Write ``decode`` and ``parse`` for images that are files of their own."""
    parse = _PARSE_PATHS if is_vectorised else _PARSE_PATH
    return Code(constants=(f"IMAGE_SIZE = {workload.image_size}",), functions=(_DECODE_ANY.strip(), parse.strip()))


def parse_code(workload: ImagesWorkload, *, is_vectorised: bool, has_probe: bool) -> Code:
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
    parse = _parse_function(image, label, own=own, is_vectorised=is_vectorised, has_probe=has_probe)
    return Code(constants=tuple(constants), functions=(decode.strip(), parse))


def _parse_function(image: str, label: str, *, own: bool, is_vectorised: bool, has_probe: bool) -> str:
    argument = (
        "element: dict[str, tf.Tensor]" if has_probe else "records: tf.Tensor" if is_vectorised else "record: tf.Tensor"
    )
    records = 'element["record"]' if has_probe else argument.partition(":")[0]
    fields = [f'"label": example[{label}]']
    fields += ['"id": example["id"]'] if own else ['"id": element["id"]'] if has_probe else []
    if is_vectorised:
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
