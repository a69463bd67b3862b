"""One iterator for all passes of a loop of the script's own, written into its source or refused."""

import re
from dataclasses import replace

import pytest

from pipeline_lab.pipeline.changes import Insert, OneIterator
from pipeline_lab.pipeline.iterator_rewrites import ONE_ITERATOR
from pipeline_lab.pipeline.loop_edits import line_of_iterator
from pipeline_lab.pipeline.recipe import LOOP, Recipe
from pipeline_lab.pipeline.rewrites import find_changes
from pipeline_lab.pipeline.source_edits import edit_sources
from tests.support.edited import change
from tests.support.written_recipe import PATH, written_recipe

DATASET = "ds = tf.data.Dataset.range(8).batch(2)\n"
LOOPS = "for epoch in epochs:\n    for x, y in ds:\n        train(x, y)\n"


def recipe_of(text: str) -> Recipe:
    """Return the recipe, whose only use is the last loop over ``ds`` or ``data``."""
    recipe, lines = written_recipe(text), text.splitlines()
    loops = [each for each in recipe.uses if each.place and re.search(r"in.*\b(ds|data)\b", lines[each.place.line - 1])]
    use = max(loops, key=lambda each: each.place.line if each.place else 0)
    return replace(recipe, uses=(replace(use, iterators=9, length=4),))


def written(text: str, *, is_closed: bool = True) -> str:
    edited = edit_sources(recipe_of(text), [change(OneIterator(is_closed, of_loop=True))], {PATH: text})
    assert not edited.refused, edited.refused[0].reason
    return edited.texts[PATH]


def refused(text: str, *, is_closed: bool = True) -> str:
    edited = edit_sources(recipe_of(text), [change(OneIterator(is_closed, of_loop=True))], {PATH: text})
    assert not edited.texts
    return edited.refused[0].reason


MADE = "batches = iter(ds.repeat())\n"


@pytest.mark.parametrize(
    ("loop", "becomes"),
    [
        ("for x, y in ds:", "for _, (x, y) in zip(range(len(ds)), batches):"),
        ("for (x, y) in ds:", "for _, (x, y) in zip(range(len(ds)), batches):"),
        ("for batch in ds:", "for _, batch in zip(range(len(ds)), batches):"),
        ("for [x, y] in ds:", "for _, [x, y] in zip(range(len(ds)), batches):"),
        ("for step, (x, y) in enumerate(ds):", "for step, (x, y) in zip(range(len(ds)), batches):"),
        ("for (step, batch) in enumerate(ds):", "for (step, batch) in zip(range(len(ds)), batches):"),
    ],
)
def test_a_loop_takes_the_elements_of_a_pass_from_the_iterator_of_all(loop: str, becomes: str) -> None:
    text = DATASET + LOOPS.replace("for x, y in ds:", loop)
    assert written(text) == text.replace("for epoch", f"{MADE}for epoch").replace(loop, becomes)


def test_both_loops_of_python_go_through_the_same() -> None:
    text = f"seen, epochs = [], [*'abcdefghi']\n{DATASET}{LOOPS}".replace("train(x, y)", "seen.append((x, y))")
    pairs = "class Pairs:\n    def __iter__(self): return iter([(1, 2), (3, 4)])\n    def __len__(self): return 2\n    def repeat(self): return [*self] * 99\n"
    texts = (each.replace(DATASET, f"{pairs}ds = Pairs()\n") for each in (text, written(text)))
    seen = []
    for each in texts:
        scope: dict[str, object] = {}
        exec(each, scope)
        seen.append(scope["seen"])
    assert seen[0] == seen[1] == [(1, 2), (3, 4)] * 9


def test_names_that_are_taken_are_left_alone() -> None:
    text = f"batches = _ = 3\n{DATASET}{LOOPS}"
    assert "batches_2 = iter(ds.repeat())\n" in written(text)
    assert "for __2, (x, y) in zip(range(len(ds)), batches_2):" in written(text)


def test_loops_in_a_function_keep_their_indentation() -> None:
    text = "def train(ds, epochs):\n\tprint()\n\t# all of them\n\twhile epochs:\n\t\tfor x in ds: step(x)\n\t\tepochs -= 1\n"
    text += f"{DATASET}train(ds, 9)\n"
    after = written(text)
    assert "\n\t# all of them\n\tbatches = iter(ds.repeat())\n\twhile epochs:\n" in after
    assert "\n\t\tfor _, x in zip(range(len(ds)), batches): step(x)\n" in after


@pytest.mark.parametrize(
    ("was", "becomes", "reason"),
    [
        ("for epoch in epochs:\n    for x, y in ds:\n        train(x, y)", "for x, y in ds: train(x, y)", "in no other loop"),
        ("in ds:", "in ds.take(2):", "Assign the dataset to a variable"),
        ("in ds:", "in tqdm(ds):", "Assign the dataset to a variable"),
        ("for x, y in ds:", "for n, (x, y) in enumerate(ds, 1):", "Assign the dataset to a variable"),
        ("for x, y in ds:", "for pair in enumerate(ds):", "Assign the dataset to a variable"),
        ("train(x, y)", "if train(x, y): break", "break may end a pass"),
        ("train(x, y)", "while x:\n            pass\n        else:\n            break", "break may end"),
        ("train(x, y)\n", "train(x, y)\n    else:\n        print()\n", "has an else"),
        ("        train(x, y)\n", "        train(x, y)\n    ds = ds.shuffle(9)\n", "names it elsewhere"),
        ("        train(x, y)\n", "        train(x, y)\n    test(ds)\n", "names it elsewhere"),
        ("    for x, y in ds:\n        train(x, y)", "    with suppress(E):\n        for x, y in ds:\n            train(x, y)", "or end it early"),
        (LOOPS, "@tf.function\ndef run():\n  for e in epochs:\n    for x in ds: train(x)\n", "has a decorator"),
        (LOOPS, "def run():\n  for e in epochs:\n    for x in ds:\n      yield x\n", "contains yield"),
        (LOOPS, "def run(ds):\n  for e in epochs:\n    for x in ds: f(x)\nrun(ds)\nrun(other)\n", "or is handed on"),
        (LOOPS, "def run(ds):\n  for e in epochs:\n    for x in ds: f(x)\nmain(run)\n", "or is handed on"),
        (LOOPS, "def run(ds):\n  for e in epochs:\n    for x in ds: f(x)\nwhile more(): run(ds)\n", "or is handed on"),
        ("in ds:", "in enumerate(*ds):", "Assign the dataset to a variable"),
        ("    for x, y in ds:\n        train(x, y)", "    if more:\n        for x, y in ds:\n            train(x, y)", "leave a pass out"),
        ("for x, y in ds:", "for (  # pairs (of\n        x, y) in ds:", "A comment stands"),
        ("for x, y in ds:", "for x, len in ds:", "uses len in a way"),
        ("for epoch", "def zip(*these): pass\nfor epoch", "uses zip in a way"),
        ("for epoch", "globals()['ds'] = 3\nfor epoch", "uses globals in a way"),
        (LOOPS, "for e in epochs: pass\nelse:\n    for x in ds: pass\n", "in no other loop"),
        (LOOPS, f"data = tqdm(ds)\n{LOOPS.replace('in ds', 'in data')}", "Where data is made is not clear"),
        (LOOPS, f"if fast:\n    ds = None\n{LOOPS}", "may stand for another dataset"),
        (LOOPS, f"for ds in (ds, 3):\n  {LOOPS.replace(chr(10), chr(10) + '  ')}\n", "in other ways than"),
        (LOOPS, "def run():\n  for e in epochs:\n    for x in ds: f(x)\nrun()\nds = 7\nrun()\n", "or is handed on"),
        (LOOPS, "def run():\n  for e in epochs:\n    for x in ds: f(x)\nrun = wrap(run)\nrun()\n", "or is handed on"),
        (LOOPS, f"from more import *\n{LOOPS}", "imports all names"),
        (LOOPS, f"ds, other = load()\n{LOOPS}", "in other ways than"),
        (LOOPS, f"def other():\n  global ds\n{LOOPS}", "in other ways than by an assignment"),
    ],
)  # fmt: skip
def test_what_may_end_a_pass_early_or_change_the_dataset_is_refused(was: str, becomes: str, reason: str) -> None:
    text = DATASET + LOOPS
    assert was in text
    assert reason in refused(text.replace(was, becomes))


SHUFFLED = (
    "ds = tf.data.Dataset.range(8).shuffle(8, seed=3).batch(2)\nprint(next(iter(ds)), len(ds), ds.element_spec)\n"
)
IN_A_FUNCTION = "def run(data):\n  for e in epochs:\n    for x in data: f(x)\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (LOOPS, ""),
        (f"{IN_A_FUNCTION}run(ds)\n", ""),
        (f"{IN_A_FUNCTION}def other(ds, data): return data\nrun(data=ds)\n", ""),
        (f"def make():\n    ds = 3\n    return ds\n{LOOPS}print(len(ds), args.ds)\n", ""),
        (f"{IN_A_FUNCTION}def main():\n  run(ds)\nif __name__ == '__main__':\n  main()\n", ""),
        (f"for x in ds.take(1): pass\n{LOOPS}".replace(".take(1)", ""), ""),
        (f"def test(data=ds): pass\n{LOOPS}", "outside of its loop"),
        (f"{IN_A_FUNCTION}run([ds])\n", "Assign what run is given"),
        ("def run(data, other):\n  for e in epochs:\n    for x in data: f(x)\nrun(ds, ds)\n", "outside of its loop"),
        (f"kept.append(Log(ds.element))\n{LOOPS}", "outside of its loop"),
        (f"kept += [ds]\n{LOOPS}", "in other ways than"),
        (f"ds = register(ds)\n{LOOPS}", "outside of its loop"),
        (f"kept.append(iter(ds))\n{LOOPS}", "outside of its loop"),
        (f"kept = iter(ds)\n{LOOPS}", "outside of its loop"),
        (f"{LOOPS}print(ds)\n", "outside of its loop"),
        (f"def test():\n  for x in ds: pass\n{LOOPS}", "outside of its loop"),
        (f"{IN_A_FUNCTION}run(ds)\ntest(ds)\n", "outside of its loop"),
        (f"{IN_A_FUNCTION}  test(data)\nrun(ds)\n", "outside of its loop"),
        (f"{IN_A_FUNCTION}run(ds.take(4))\n", "Assign what run is given"),
        (f"train = ds\n{LOOPS}", "outside of its loop"),
        (f"keep(ds)\n{LOOPS}", "outside of its loop"),
        (f"for run in runs:\n    {LOOPS.replace(chr(10), chr(10) + '    ')}\n", "are in another loop"),
        ("def run():\n  for e in epochs:\n    for x in ds: f(x)\nrun()\nrun()\n", "or is handed on"),
    ],
)
def test_what_shuffles_or_caches_is_read_by_its_loop_alone(text: str, reason: str) -> None:
    if not reason:
        assert ".repeat())\n" in written(SHUFFLED + text)
    else:
        assert reason in refused(SHUFFLED + text)


def test_a_dataset_of_what_another_one_shuffles_keeps_its_iterators() -> None:
    text = "base = tf.data.Dataset.range(8).shuffle(8, seed=3)\nds = base.batch(4)\n" + LOOPS
    assert "Where ds is made is not clear: nothing that is assigned to it calls shuffle." in refused(text)
    assert MADE in written(text.replace(".shuffle(8, seed=3)", ""))


def test_what_is_added_where_the_dataset_is_read_goes_without_one_iterator() -> None:
    text = f"def make(): pass\nds = make()\n{LOOPS}"
    recipe = recipe_of(DATASET + LOOPS)
    place = recipe.uses[0].place
    assert place is not None
    use = replace(recipe.uses[0], place=replace(place, line=4, end_line=4, name_line=4))
    made = tuple(replace(call, is_direct=False) for call in recipe.calls)
    edits = (OneIterator(of_loop=True), Insert(use.call, "prefetch", {"buffer_size": 1}))
    for order in (edits, edits[::-1]):
        changes = [change(each) for each in order]
        edited = edit_sources(replace(recipe, calls=made, uses=(use,)), changes, {PATH: text}, use)
        assert "One iterator serves all passes" in edited.refused[0].reason
        assert len(edited.written) == 1


@pytest.mark.parametrize("loop", ["for(x,y)in ds:", "for[x,y]in ds:"])
def test_names_stay_apart_from_for_and_in(loop: str) -> None:
    assert f"for _, {loop[3:8]} in zip(range(len(ds)), batches):" in written(
        DATASET + LOOPS.replace("for x, y in ds:", loop)
    )


def test_what_the_loop_may_change_for_the_dataset_keeps_its_iterators() -> None:
    assert "what the loop changes there" in refused(DATASET + LOOPS, is_closed=False)


def test_breaks_of_other_loops_and_conditions_around_are_none_of_its_concern() -> None:
    text = DATASET + LOOPS.replace("train(x, y)", "for z in x:\n            break")
    assert MADE in written(text.replace("    for x, y in ds:", "    if epoch: print()\n    for x, y in ds:"))


def test_the_line_that_makes_the_iterator_is_where_the_dataset_is_read_now() -> None:
    text = DATASET + LOOPS
    edited = edit_sources(recipe_of(text), [change(OneIterator(of_loop=True))], {PATH: text})
    assert edited.line_that_reads(PATH, 3) == 2
    assert line_of_iterator(text, 3) == 3


def test_it_applies_to_loops_over_a_dataset_that_ends_and_shares_nothing_with_others() -> None:
    recipe = recipe_of(DATASET + LOOPS)
    (found,) = [each for each in find_changes(recipe) if each.joins_epochs]
    assert found.words.startswith(ONE_ITERATOR[LOOP])
    (use,) = recipe.uses
    draws = replace(recipe.calls[0], stateful=("RandomUniform",)), *recipe.calls[1:]
    other = replace(use, call=1, place=None)
    for calls, uses, is_found in (
        (recipe.calls, (use, other), True),
        (draws, (use, other), False),
        (draws, (use, replace(use, place=None)), False),
        (draws, (replace(other, iterators=1), use), True),  # a look at it before
    ):
        found = find_changes(replace(recipe, calls=calls, uses=uses), use)
        assert any(each.joins_epochs for each in found) == is_found
