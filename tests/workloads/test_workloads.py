import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from pipeline_lab.fields import MAX_FILES
from pipeline_lab.workloads.features import FeaturesWorkload
from pipeline_lab.workloads.images import ImagesWorkload
from pipeline_lab.workloads.synthetic import SyntheticWorkload


@pytest.mark.parametrize(
    ("written", "sizes"),
    [
        ("1000,2000,3000", (1000, 2000, 3000)),
        ("3x512", (512, 512, 512)),
        ("2 × 10, 5", (10, 10, 5)),
        (7, (7,)),
        ([1, 2], (1, 2)),
    ],
)
def test_file_sizes_are_read_as_people_write_them(written: object, sizes: tuple[int, ...]) -> None:
    assert ImagesWorkload.model_validate({"examples_per_file": written}).examples_per_file == sizes


@pytest.mark.parametrize("wrong", ["", "1000;2000", "x3", "0", "-5", f"{MAX_FILES + 1}x1", "999999999x1", "1e3", []])
def test_wrong_file_sizes_are_refused(wrong: object) -> None:
    with pytest.raises(ValidationError):
        SyntheticWorkload.model_validate({"examples_per_file": wrong})


@pytest.mark.slow
@given(st.lists(st.integers(1, 10_000_000), min_size=1, max_size=20))
def test_sizes_written_with_commas_come_back(sizes: list[int]) -> None:
    text = ",".join(map(str, sizes))
    assert SyntheticWorkload.model_validate({"examples_per_file": text}).examples_per_file == tuple(sizes)


def test_own_files_need_a_pattern_and_only_they_have_one() -> None:
    assert ImagesWorkload(data="files", pattern="/data/*.tfrecord").pattern == "/data/*.tfrecord"
    with pytest.raises(ValidationError, match="data = files needs a pattern"):
        ImagesWorkload(data="files")
    with pytest.raises(ValidationError, match="a pattern only applies to data = files, not to data = digits"):
        ImagesWorkload(pattern="/data/*")


def test_times_are_finite() -> None:
    with pytest.raises(ValidationError, match="finite"):
        SyntheticWorkload(map_ms=float("nan"))


def test_captions_share_their_images_vectors() -> None:
    workload = FeaturesWorkload(examples_per_file=(1000, 1001), captions_per_image=20, vector_size=4096)
    assert workload.images == 101  # one caption more than 100 images have
    assert workload.table_bytes == 101 * 4096 * 4
    assert [workload.model_copy(update={"layout": layout}).held_bytes > 0 for layout in ("lookup", "variable")] == [
        False,
        True,
    ]
