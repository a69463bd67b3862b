"""Functions of the user's in two parts: what is the same each time, and what draws."""

import pytest

from pipeline_lab.pipeline.function_parts import FunctionParts, split_function

MODULE = """\
import random

import tensorflow as tf
from keras import layers

augment = layers.RandomFlip()


def read(path):
    image = tf.io.decode_jpeg(tf.io.read_file(path))
    return tf.image.resize(image, (8, 8))


def flip(image):
    return tf.image.random_flip_left_right(image)


def sizes():
    made = [8, 8]
    return made


def count(image):
    global seen
    seen += 1
    return image


def load(path, label):
{body}

dataset = files.map(load)
"""


def _split(*lines: str) -> FunctionParts | None:
    text = MODULE.format(body="".join(f"    {line}\n" if line else "\n" for line in lines))
    return split_function(text, "load", 1 + text.splitlines().index("def load(path, label):"))


def test_the_rest_begins_with_the_first_statement_that_draws() -> None:
    parts = _split(
        '"""Make an example."""',
        "image = read(path)  # the file",
        "image = image / 255.0",
        "",
        "# differs each time",
        "",
        "image = flip(image)",
        "return image, label",
    )
    assert parts is not None
    assert parts.first == (
        'def load_kept(path, label):\n    """Make an example."""\n    image = read(path)  # the file\n    image = image / 255.0\n    return label, image\n'
    )
    assert parts.rest == (
        "def load_drawn(label, image):\n    # differs each time\n\n    image = flip(image)\n    return image, label\n"
    )
    assert parts.between == "    return label, image\n\n\ndef load_drawn(label, image):\n"
    assert parts.line - parts.after == 2, "the blank line between them goes, comments stay"


def test_a_single_tensor_is_handed_over_as_a_tuple_whatever_it_holds() -> None:
    parts = _split("image = read(path)", "return flip(image)")
    assert parts is not None
    assert parts.first.endswith("    return (image,)\n")
    assert parts.rest.startswith("def load_drawn(image):\n")


def test_decorators_and_names_of_comprehensions_stay_where_they_are() -> None:
    parts = _split(
        "image = tf.stack([read(part) for part in (path, path)])",
        "@tf.function(jit_compile=True)",
        "def crop(image):",
        "    return tf.image.random_crop(image, (4, 4, 3))",
        "return [crop(part) for part in image]",
    )
    assert parts is not None
    assert parts.rest.startswith("def load_drawn(image):\n    @tf.function(jit_compile=True)\n    def crop")


@pytest.mark.parametrize(
    "draws",
    [
        "image = tf.image.random_flip_left_right(image)",
        "image += tf.random.normal(tf.shape(image))",
        "image = augment(image)",  # nobody knows
        "image = flip(image)",
        "image = image * random.random()",
        "image = tf.nn.dropout(image, 0.5)",
        "image = tf.py_function(count, [image], tf.float32)",
        "image = count(image)",
        "image = tf.keras.layers.RandomZoom(0.1)(image)",
        "print(image)",
        "size = len(path.shape)",
        "if label > 1: image = read(path)",
        "table[0] = image",
        "image = tf.map_fn(flip, image)",
        "image = tf.map_fn(lambda one: flip(one), image)",
        "image = tf.function(flip)(image)",
        "image = tf.stack(flip)",  # a function of the file, whatever takes it
        "image = tf.raw_ops.StatefulStandardNormalV2(image)",
        "image = tf.nn.fractional_max_pool(image, [1, 2, 2, 1])[0]",
        "image = (other := read(path))",
        "image += tf.compat.v1.truncated_normal(tf.shape(image))",
        "image = tf.ragged.map_flat_values(tf.image.random_flip_left_right, image)",
        "image = tf.stack([image, random])",  # what is imported, whatever takes it
        "size: int",
        "image = tf.image.stateless_random_crop(image, (4, 4, 3), (1, 2))",
    ],
)
def test_what_may_be_other_each_time_is_not_kept(draws: str) -> None:
    parts = _split("image = read(path)", draws, "image = tf.cast(image, tf.float32)", "return image, label")
    assert parts is not None
    assert draws in parts.rest
    assert "tf.cast" in parts.rest
    assert draws not in parts.first


@pytest.mark.parametrize(
    "lines",
    [
        ("image = read(path)", "return image, label"),  # nothing draws, a cache may follow the call
        ("return flip(read(path)), label",),  # nothing comes before it
        ("label = label + 1", "return flip(read(path)), label"),  # nothing worth keeping
        ("image = read(path)", "size = 8, 8", "return tf.image.random_crop(image, (*size, 3))"),  # no tensor
        ("image = read(path)", "shape = image.shape", "return tf.image.random_crop(image, shape)"),
        ("image = read(path)", "size = sizes()", "return tf.image.random_crop(image, size + [3])"),
        ("image = read(path)", "count = SIDE + 1", "return tf.image.random_crop(image, [1] * count)"),
        ("image = read(path)", "count = CFG['count']", "return tf.image.random_crop(image, [1] * count)"),
        ("image = read(path)", "parts = tf.split(image, 3, -1)", "return flip(tf.concat(parts, -1))"),
        ("image, size = read(path), 8", "return tf.image.random_crop(image, (size, size, 3))"),
        ("image = read(path); image = flip(image)", "return image"),  # on one line
        ("image = read(path)", "load_drawn = flip(image)", "return load_drawn"),  # the name is taken
        ("image = read(path)", "load_kept = flip(image)", "return load_kept"),
    ],
)
def test_functions_that_have_no_two_parts_stay_whole(lines: tuple[str, ...]) -> None:
    assert _split(*lines) is None


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ("files.map(load)", "files.map(load)\nothers = more.map(load)"),  # named elsewhere
        ("def load(path, label):", "@tf.function\ndef load(path, label):"),
        ("def load(path, label):", "def load(path, label=None):"),
        ("def load(path, label):", "def load(path, *label):"),
        ("    return flip(image)", "    global last\n    return flip(image)"),
        ("def load(path, label):", "def load(path, label:"),  # no Python
        (
            "def load(path, label):",
            "def read(path):\n    return flip(path)\n\n\ndef load(path, label):",
        ),  # which `read`?
        ("files.map(load)", "files.map(load)\nread = flip"),
        ("files.map(load)", "files.map(load)\ntf = fake"),
        ("import random", "from random import *"),
        ("import random", "try:\n    pass\nexcept Exception as read:\n    pass"),
        ("def read(path):", "class Reader:\n  def read(path):"),  # no plain name
        ("def load(path, label):", "def load(path, read):"),
    ],
)
def test_functions_that_are_more_than_one_calls_own_stay_whole(was: str, becomes: str) -> None:
    text = MODULE.format(body="    image = read(path)\n    return flip(image)\n")
    assert split_function(text, "load", 1 + text.splitlines().index("def load(path, label):")) is not None
    changed = text.replace(was, becomes)
    line = next(number for number, each in enumerate(changed.splitlines(), 1) if "load(path" in each)
    assert split_function(changed, "load", line) is None


def test_indents_stay_those_of_the_file_whatever_its_line_ends() -> None:
    text = (
        MODULE.format(body="    image = read(path)\n    return flip(image)\n")
        .replace("    ", "\t")
        .replace("\n", "\r\n")
    )
    parts = split_function(text, "load", 1 + text.splitlines().index("def load(path, label):"))
    assert parts is not None
    assert parts.between == "\treturn (image,)\n\n\ndef load_drawn(image):\n"


def test_pairs_are_handed_over_one_by_one_and_names_are_found_behind_def() -> None:
    text = MODULE.format(body="    image, again = read(path), label + 1\n    return flip(image), again\n").replace(
        "load", "d"
    )
    parts = split_function(text, "d", 1 + text.splitlines().index("def d(path, label):"))
    assert parts is not None
    assert parts.first.startswith("def d_kept(path, label):\n")
    assert parts.first.endswith("    return image, again\n")


def test_a_function_inside_of_another_keeps_its_place() -> None:
    text = (
        "import tensorflow as tf\n\n\ndef make(files):\n    def load(path):\n        image = tf.io.read_file(path)\n"
        "        return tf.random.shuffle(image)\n\n    return files.map(load)\n"
    )
    parts = split_function(text, "make.<locals>.load", 5)
    assert parts is not None
    assert parts.between == "        return (image,)\n\n    def load_drawn(image):\n"
    assert parts.first == "    def load_kept(path):\n        image = tf.io.read_file(path)\n        return (image,)\n"
