"""Whether Python is seen to draw at random."""

from pathlib import Path

import pytest

from pipeline_lab.pipeline.random_draws import draws_at_random
from pipeline_lab.pipeline.recipe import Recipe, UserFunction


@pytest.mark.parametrize(
    ("body", "draws"),
    [
        ("return np.random.poisson(image)", True),
        ("return rng.normal(size=3) + image", True),
        ("return random.choice(image)", True),
        ("return np.convolve(image, kernel)", False),
        ("return image  # random", False),
        ("return (", False),
    ],
)
def test_the_names_in_a_function_tell(tmp_path: Path, body: str, draws: bool) -> None:
    path = tmp_path / "train.py"
    path.write_text(f"import random\n\nclass Noise:\n    def corrupt(self, image):\n        {body}\n\nrandom.seed(1)\n")
    function = UserFunction("Noise.corrupt", "__main__", str(path), 4, 5)
    assert draws_at_random(Recipe((), ()), function) is draws


def test_of_a_function_without_a_source_nothing_is_said(tmp_path: Path) -> None:
    assert not draws_at_random(Recipe((), ()), UserFunction("built_in"))
    assert not draws_at_random(Recipe((), ()), UserFunction("gone", "", str(tmp_path / "gone.py"), 1, 2))
