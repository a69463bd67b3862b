"""Calls that change places in a user's file, also over an ``if`` that may make one of them."""

import ast
from dataclasses import replace

import pytest

from pipeline_lab.pipeline.changes import Insert, MoveBefore, SetArgument
from tests.support.edited import CHAIN, HEAD, PREFETCH, refused, written
from tests.support.written_recipe import written_recipe


def test_calls_that_change_places_take_their_comments_along() -> None:
    after = written(CHAIN, MoveBefore(3, 2))
    assert [line.strip() for line in after.splitlines()[2:8]] == [
        "tf.data.Dataset.range(8)  # numbers",
        ".batch(",
        "32,",
        "drop_remainder=True,  # all alike",
        ")  # batches",
        ".map(f)  # decode",
    ]
    assert ast.parse(after)


def test_what_moves_can_change_too_and_its_place_keeps_what_is_added_there() -> None:
    text = f"{HEAD}ds = ds.map(f).batch(32)\nmodel.fit(ds)\n"
    edits = (MoveBefore(2, 1), SetArgument(1, "num_parallel_calls", -1), Insert(2, *PREFETCH))
    becomes = "ds.batch(32).map(f, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)"
    assert written(text, *edits) == text.replace("ds.map(f).batch(32)", becomes)


def test_what_moves_can_be_cached_where_it_comes_to() -> None:
    edit_ = MoveBefore(2, 1, "cache")
    assert written("ds = ds.shuffle(8).map(f)\n", edit_) == "ds = ds.map(f).cache().shuffle(8)\n"
    assert written("ds = ds.shuffle(8)  # a\nds = ds.map(f)  # b\n", edit_) == (
        "ds = ds.map(f).cache()  # b\nds = ds.shuffle(8)  # a\n"
    )
    text = "ds = (\n    ds\n    .shuffle(8)  # mix\n    .map(\n        f,\n    )  # decode\n)\n"
    assert written(text, edit_, SetArgument(2, "num_parallel_calls", -1)).splitlines() == [
        "ds = (",
        "    ds",
        "    .map(",
        "        f,",
        "        num_parallel_calls=-1,",
        "    )  # decode",
        "    .cache()",
        "    .shuffle(8)  # mix",
        ")",
    ]


def test_a_call_moves_over_several_others() -> None:
    text = "ds = ds.map(f).map(g).batch(32)\n"
    assert written(text, MoveBefore(3, 1)) == "ds = ds.batch(32).map(f).map(g)\n"


@pytest.mark.parametrize(
    "ending",
    [
        "ds = ds.batch(32)  # b",
        "return ds.batch(32)  # b",
        "ds = ds.batch(32).prefetch(1)",
        "batches = ds.batch(32)  # b\n    return batches",
    ],
)
def test_statements_that_follow_each_other_exchange_their_calls(ending: str) -> None:
    text = f"def make(ds):\n    ds = ds.map(f)  # a\n\n    {ending}\n"
    after = written(text, MoveBefore(2, 1))
    assert ast.parse(after)
    assert after.index(".batch(32)") < after.index(".map(f)")
    if "# b" in ending:
        assert after.index("# b") < after.index("# a")


@pytest.mark.parametrize(
    "lines",
    [
        "ds = ds.map(f)\nval = ds\nds = ds.batch(32)",
        "ds = ds.map(f)\nbatched = ds.batch(32)",
        "ds = ds.map(f)\nds = ds.batch(count(ds))",
        "mapped = ds.map(f)\nds = ds.batch(32)",
        "ds = keep(ds.map(f))\nds = ds.batch(32)",
        "for f in functions:\n    ds = ds.map(f)\nds = ds.batch(32)",
        "def make(ds):\n    ds = ds.map(f)\n    batches = ds.batch(32)\n    return ds",
        "def make(ds):\n    global ds\n    ds = ds.map(f)\n    batches = ds.batch(32)",
        "def make(ds):\n    for a in b:\n        ds = ds.map(f)\n        batches = ds.batch(32)",
        "if a: ds = raw.map(f)\nds = ds.batch(32)",
        "if a: ds = ds.map(f) if b else ds\nds = ds.batch(32)",
        "def make(ds): ds = ds.map(f)\nds = ds.batch(32)",
        "if a:\n    ds = ds.map(f)\nelse:\n    ds = ds.map(g)\nds = ds.batch(32)",
        "if a:\n    pass\nelif b:\n    ds = ds.map(f)\nds = ds.batch(32)",
        "if a:\n    ds = ds.map(f)\n    val = ds\nds = ds.batch(32)",
        "if a:\n    ds = ds.map(f); val = ds\nds = ds.batch(32)",
        "if a:\n    ds = ds.map(f)\nval = ds\nds = ds.batch(32)",
        "if a:\n    ds = ds.map(f)\nds = ds.batch(32); val = ds",
        "if len(ds) > 9:\n    ds = ds.map(f)\nds = ds.batch(32)",
        "if (f := a):\n    ds = ds.map(f)\nds = ds.batch(32)",
        "if a:\n    ds = ds.map(of(ds))\nds = ds.batch(32)",
        "if a:\n    ds = ds.map(f)\nds = ds.batch(count(ds))",
        "if a:\n    ds = ds.map(f)\nval = ds.batch(32)",
        "if a:\n    ds = raw.map(f)\nds = ds.batch(32)",
        "ds = ds.map(f) if a else other\nds = ds.batch(32)",
        "ds = ds.map(f) if len(ds) else ds\nds = ds.batch(32)",
        "ds = ds.map(f) if a else ds; val = ds\nds = ds.batch(32)",
        "other = ds.map(f) if a else ds\nds = ds.batch(32)",
        "if b:\n    ds = ds.map(f) if a else ds\nds = ds.batch(32)",
        "while a:\n    ds = ds.map(f)\nds = ds.batch(32)",
    ],
)
def test_calls_that_something_else_may_read_between_do_not_move(lines: str) -> None:
    refused(f"{lines}\n", MoveBefore(2, 1))


BRANCH = """\
def make(ds, training):
    if training:
        ds = ds.shuffle(90)
"""
BEFORE = "    ds = ds.map(f).cache()\n    if training:\n        ds = ds.shuffle(90)\n"


@pytest.mark.parametrize(
    ("goes_on", "becomes"),
    [
        ("    return ds.map(f).batch(8)\n", "    return ds.batch(8)\n"),
        ("    return ds.map(f)\n", "    return ds\n"),
        ("    made = ds.map(f)\n    return made\n", "    made = ds\n    return made\n"),
        ("    ds = ds.map(f).batch(8)\n", "    ds = ds.batch(8)\n"),
        ("    ds = (\n        ds.map(f)\n        .batch(8)\n    )\n", "    ds = (\n        ds.batch(8)\n    )\n"),
        ("    ds = (\n        ds\n        .map(f)\n    )\n    return ds\n", "    return ds\n"),
        ("    return (\n        ds\n        .map(f)\n    )\n", "    return (\n        ds\n    )\n"),
    ],
)
def test_a_call_moves_before_an_if_that_may_make_the_one_before_it(goes_on: str, becomes: str) -> None:
    after = written(f"{BRANCH}{goes_on}", MoveBefore(2, 1, "cache"))
    assert after == f"def make(ds, training):\n{BEFORE}{becomes}"
    assert ast.parse(after)


@pytest.mark.parametrize(
    "line", ["ds = ds.shuffle(90) if training else ds", "ds = ds if len(files) < 9 else ds.shuffle(90)  # mixed"]
)
def test_a_call_moves_before_a_line_that_makes_the_one_before_it_or_not(line: str) -> None:
    text = f"def make(ds, training):\n    {line}\n    return ds.map(f).batch(8)\n"
    assert written(text, MoveBefore(2, 1, "cache")) == (
        f"def make(ds, training):\n    ds = ds.map(f).cache()\n    {line}\n    return ds.batch(8)\n"
    )


def test_what_moves_before_an_if_takes_its_comment_and_arguments_along() -> None:
    edits = MoveBefore(2, 1, "cache"), SetArgument(2, "num_parallel_calls", 4)
    line = "ds = ds.map(f, num_parallel_calls=4).cache()  # decode"
    for goes_on, becomes in (
        ("    ds = (ds.map(f))  # decode\n    return ds\n", "    return ds\n"),
        (
            "    return (\n        ds.map(f)  # decode\n        .batch(8)\n    )\n",
            "    return (\n        ds.batch(8)\n    )\n",
        ),
    ):
        assert written(BRANCH + goes_on, *edits) == (
            f"def make(ds, training):\n{BEFORE.replace('ds = ds.map(f).cache()', line)}{becomes}"
        )


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        (  # comments above, blank lines around
            "if a:\n    ds = ds.shuffle(9)\n\n# Decode.\nds = ds.map(f)\n\nmodel.fit(ds)\n",
            "# Decode.\nds = ds.map(f).cache()\nif a:\n    ds = ds.shuffle(9)\n\nmodel.fit(ds)\n",
        ),
        (
            "x = 1\n# Only to train:\n# else in order.\nif a:\n    ds = ds.shuffle(9)\nds = ds.map(f).batch(2)\n",
            "x = 1\nds = ds.map(f).cache()\n# Only to train:\n# else in order.\nif a:\n    ds = ds.shuffle(9)\nds = ds.batch(2)\n",
        ),
        (  # line ends
            "if a:\r\n    ds = ds.shuffle(9)\r\nds = ds.map(f)",
            "ds = ds.map(f).cache()\r\nif a:\r\n    ds = ds.shuffle(9)\r\n",
        ),
        (
            "if a:\r\n    ds = ds.shuffle(9)\r\nds = ds.map(f)\nmodel.fit(ds)\r\n",
            "ds = ds.map(f).cache()\r\nif a:\r\n    ds = ds.shuffle(9)\r\nmodel.fit(ds)\r\n",
        ),
        (  # comments inside of the statement
            "if a:\n    ds = ds.shuffle(9)\nds = (  # build\n    ds  # raw\n    # decode\n    .map(f)  # slow\n)\n",
            "ds = ds.map(f).cache()  # slow\nif a:\n    ds = ds.shuffle(9)\nds = (  # build\n    ds  # raw\n    # decode\n)\n",
        ),
        (
            "if a:\n    ds = ds.shuffle(9)\nds = ds.map(f);  # decode\n",
            "ds = ds.map(f).cache()  # decode\nif a:\n    ds = ds.shuffle(9)\n",
        ),
        (  # a call of several lines
            "if a:\n    ds = ds.shuffle(9)\nds = (\n    ds\n    .map(\n        f,\n    )\n    .batch(2)\n)\n",
            "ds = ds.map(\n    f,\n).cache()\nif a:\n    ds = ds.shuffle(9)\nds = (\n    ds\n    .batch(2)\n)\n",
        ),
    ],
)
def test_comments_blank_lines_and_line_ends_stay_right(text: str, becomes: str) -> None:
    assert written(text, MoveBefore(2, 1, "cache")) == becomes


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"{BRANCH}    return ds.map(f) if f else None\n", "map in train.py is not always called"),
        (f"{BRANCH}    return f and ds.map(f)\n", "map in train.py is not always called"),
        (f"{BRANCH}    out[len(ds)] = ds.map(f)\n", "is read elsewhere"),
        (f"{BRANCH}    ds: D = ds.map(f)\n", "assign or return"),
        (f"{BRANCH}    return ds \\\n        .map(f)\n", "continued by a backslash"),
        (f"{BRANCH}    return ds.map(f, (n := 90))\n", "is set by :="),
        (BRANCH.replace("90", "(n := 90)") + "    return ds.map(f, n)\n", "is set by :="),
        (
            BRANCH.replace("if training", "if is_first()") + "    ds = ds.map(f)\n    g = lambda: ds\n",
            "is read elsewhere",
        ),
        ("ds = ds.map(part(f, n=len(ds)))\nds = ds.batch(2)\n", "is read elsewhere"),
        ("try:\n    ds = ds.map(f)\n    ds = ds.batch(2)\nexcept ValueError:\n    pass\n", "an error may be caught"),
        ("with suppress(ValueError):\n    ds = ds.map(f)\n    ds = ds.batch(2)\n", "an error may be caught"),
        ("def count():\n    return len(ds)\n\nds = ds.map(f)\nds = ds.batch(count())\n", "is read elsewhere"),
        (
            "def make(ds):\n    def peek():\n        info[ds] = 1\n        return 32\n    ds = ds.map(f)\n    ds = ds.batch(peek())\n    return ds\n",
            "is read elsewhere",
        ),
        ("class A:\n    ds = raw.map(f)\n    made = ds.batch(2)\n", "is read elsewhere"),
        (
            "def make(raw):\n    g = (str(ds) for _ in raw)\n    ds = raw.map(f)\n    return ds.batch(2)\n",
            "is read elsewhere",
        ),
    ],
)
def test_what_would_mean_something_else_is_refused(text: str, reason: str) -> None:
    assert reason in refused(text, MoveBefore(2, 1, "cache"))


def test_a_function_with_a_variable_of_the_same_name_is_none_that_reads_it() -> None:
    text = "def other(ds):\n    return len(ds)\n\nds = ds.map(f)\nds = ds.batch(size(x))\n"
    assert written(text, MoveBefore(2, 1)).endswith("ds = ds.batch(size(x))\nds = ds.map(f)\n")


def test_what_lands_on_a_line_of_others_does_not_get_one_of_its_own() -> None:
    text = "ds = ds.shuffle(9)\nds = (\n    ds\n    .map(f)\n)\n"
    assert written(text, MoveBefore(2, 1, "cache")) == "ds = ds.map(f).cache()\nds = (\n    ds\n    .shuffle(9)\n)\n"


def test_nothing_new_is_written_into_a_comment() -> None:
    text = f"{HEAD}ds = ds.shuffle(90)  # mix\nds = ds.map(f)\n"
    after = written(text, MoveBefore(2, 1, "cache"), Insert(2, *PREFETCH))
    assert after == f"{HEAD}ds = ds.map(f).cache()  # mix\nds = ds.shuffle(90).prefetch(tf.data.AUTOTUNE)\n"


@pytest.mark.parametrize(
    ("text", "edits", "becomes"),
    [
        (
            "ds = ds.map(f).map(g).shuffle(8)\n",
            (MoveBefore(3, 2), Insert(1, "cache")),
            "ds = ds.map(f).cache().shuffle(8).map(g)\n",
        ),
        (
            "ds = (\n    ds\n    .map(f)\n    .map(g)\n    .shuffle(8)\n)\n",
            (MoveBefore(3, 2), Insert(1, "cache")),
            "ds = (\n    ds\n    .map(f)\n    .cache()\n    .shuffle(8)\n    .map(g)\n)\n",
        ),
        ("ds = ds.map(f).map(g).batch(32)\n", (MoveBefore(3, 1), Insert(2, "cache")), ""),
    ],
)
def test_what_is_new_before_calls_that_change_places_stays_before_them(
    text: str, edits: tuple[MoveBefore | Insert, ...], becomes: str
) -> None:
    if becomes:
        assert written(text, *edits) == becomes
    else:
        assert "would come between" in refused(text, *edits)


def test_a_string_that_ends_like_a_comment_is_none() -> None:
    text = 'HELP = """usage\n# run it"""\nif a:\n    ds = ds.shuffle(9)\nds = ds.map(f)\n'
    after = written(text, MoveBefore(2, 1, "cache"))
    assert after == 'HELP = """usage\n# run it"""\nds = ds.map(f).cache()\nif a:\n    ds = ds.shuffle(9)\n'


def test_what_is_new_behind_a_call_that_moves_before_an_if_stays() -> None:
    after = written(
        f"{HEAD}{BRANCH}    ds = ds.map(f)\n    return ds\n", MoveBefore(2, 1, "cache"), Insert(2, *PREFETCH)
    )
    assert after.endswith(f"{BEFORE}    ds = ds.prefetch(tf.data.AUTOTUNE)\n    return ds\n")


def test_a_call_that_is_made_again_behind_itself_does_not_move_before_an_if() -> None:
    text = "for a in (True, False):\n    if a:\n        ds = ds.shuffle(9)\n    ds = ds.map(f)\nmodel.fit(ds)\n"
    recipe = written_recipe(text)
    shuffled, mapped = recipe.calls[:2]
    again = replace(mapped, number=9, inputs=(mapped.number,))
    both = replace(recipe, calls=(*recipe.calls, again))
    assert "one after the other" in refused(text, MoveBefore(mapped.number, shuffled.number), recipe=both)


def test_datasets_that_skip_a_call_let_another_move_before_it_only_over_its_if() -> None:
    for text, is_refused in (
        (f"{BRANCH}    return ds.map(f)\n", False),
        ("def make(ds, a):\n    ds = ds.shuffle(9)\n    ds = ds.map(f)\n    return ds\n", True),
    ):
        recipe = written_recipe(text)
        mapped = recipe.calls[1]
        both = replace(recipe, calls=(*recipe.calls, replace(mapped, number=9, inputs=())))
        if is_refused:
            assert "not used together everywhere" in refused(text, MoveBefore(2, 1, "cache"), recipe=both)
        else:
            assert written(text, MoveBefore(2, 1, "cache"), recipe=both)
