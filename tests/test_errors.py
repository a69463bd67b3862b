import pytest

from pipeline_lab import errors
from pipeline_lab.errors import PipelineLabError, Unavailable


@pytest.mark.parametrize(
    "kind", [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
)
def test_one_family_covers_every_error(kind: type[Exception]) -> None:
    assert issubclass(kind, PipelineLabError)


def test_unavailable_tells_why_in_its_documents_place() -> None:
    assert Unavailable("No steps; record with profiled_steps ≥ 2.").to_json() == {
        "unavailable": "No steps; record with profiled_steps ≥ 2."
    }
