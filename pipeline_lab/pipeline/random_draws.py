"""Whether Python of the user's draws at random, as far as its source shows."""

import ast
import textwrap

from pipeline_lab.pipeline.recipe import Recipe, UserFunction

_DRAWING = frozenset(
    [
        "random",
        "rand",
        "randn",
        "randint",
        "randrange",
        "random_sample",
        "uniform",
        "normal",
        "standard_normal",
        "poisson",
        "binomial",
        "beta",
        "exponential",
        "gamma",
        "gauss",
        "choice",
        "choices",
        "sample",
        "shuffle",
        "permutation",
        "permuted",
        "integers",
        "rng",
        "default_rng",
    ]
)
"""Names of modules, generators and functions that draw; something else of such a name counts, too."""


def draws_at_random(recipe: Recipe, function: UserFunction) -> bool:
    """Say whether a function names what draws at random; what it calls is not looked into."""
    text = None if not function.line else recipe.text(function.file)
    lines = [] if text is None else text.splitlines()[function.line - 1 : function.end_line or None]
    try:
        tree = ast.parse(textwrap.dedent("\n".join(lines)))
    except SyntaxError:
        return False
    names = {
        node.attr if isinstance(node, ast.Attribute) else node.id
        for node in ast.walk(tree)
        if isinstance(node, (ast.Attribute, ast.Name))
    }
    return not names.isdisjoint(_DRAWING)
