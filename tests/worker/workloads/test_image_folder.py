"""Images that are files of their own, and CIFAR-10; the process with TensorFlow is that of the other tests."""

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.options.training import TrainingOptions
from pipeline_lab.stages.batches import BatchStage
from pipeline_lab.stages.functions import ParseStage
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.read import ReadStage
from pipeline_lab.stages.stage import Stage
from pipeline_lab.worker.workloads.data_files import record_id
from pipeline_lab.workloads.images import ImagesWorkload
from tests.runs.data_files.test_tfrecord import write_records
from tests.support.examples import example, int64s, strings

pytestmark = pytest.mark.tensorflow

Ask = Callable[..., Any]

BATCH, PARSE = BatchStage(size=2, drop_remainder=False), ParseStage()


def png(width: int, height: int) -> bytes:
    """Return a black image."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    header = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes((8, 2, 0, 0, 0))
    rows = zlib.compress((b"\0" + bytes(3 * width)) * height)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, size in (("cat/1.png", 8), ("cat/2.PNG", 20), ("dog/1.png", 9)):
        path = tmp_path / "pets" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(size, 10))
    return tmp_path / "pets"


def options(folder: Path, *stages: Stage, classes: int = 2) -> RunOptions:
    workload = ImagesWorkload(data="folder", folder=str(folder), image_size=8, classes=classes)
    return RunOptions(
        workload=workload,
        pipeline=PipelineOptions(stages=(ReadStage(), *stages)),
        training=TrainingOptions(steps=1, warmup_steps=1, calibrate=False, seed=1),
    )


@pytest.mark.parametrize("stages", [(PARSE, BATCH), (BATCH, PARSE)], ids=["per-example", "vectorized"])
def test_files_of_any_size_come_with_their_class(ask_tensorflow: Ask, folder: Path, stages: tuple[Stage, ...]) -> None:
    job = options(folder, *stages).to_json()
    ids = ask_tensorflow("ids_of", options=job)
    assert ids == [[record_id(0, 0), record_id(0, 1)], [record_id(1, 0)]]
    assert ask_tensorflow("first_images", options=job)["shape"] == [2, 8, 8, 3]


def test_a_broken_image_is_named_when_the_job_fails(ask_tensorflow: Ask, folder: Path, tmp_path: Path) -> None:
    (folder / "dog" / "1.png").write_bytes(png(9, 9)[:-30])
    sentence = ask_tensorflow("run_own", root=str(tmp_path), options=options(folder, PARSE, BATCH).to_json())
    assert sentence.startswith(f"{folder / 'dog' / '1.png'} cannot be decoded (Invalid PNG")
    assert sentence.endswith("; write it again as JPEG or PNG, or leave it out.")


@pytest.mark.parametrize(
    ("image", "trouble"),
    [
        ({"image": strings(png(8, 8)[:-30])}, "The image of record 1 of {path} cannot be decoded (Invalid PNG"),
        ({}, "Record 1 of {path} has no feature 'image', which every record must hold; set workload.image_feature and"),
    ],
    ids=["broken", "missing"],
)
def test_a_record_without_an_image_is_named(
    ask_tensorflow: Ask, tmp_path: Path, image: dict[str, bytes], trouble: str
) -> None:
    whole = example(image=strings(png(8, 8)), label=int64s(1))
    path = write_records(tmp_path / "a.tfrecord", [whole, example(label=int64s(0), **image), whole])
    job = options(tmp_path, PARSE, BATCH)
    workload = ImagesWorkload(data="files", pattern=str(path), image_size=8, classes=2)
    sentence = ask_tensorflow(
        "run_own", root=str(tmp_path / "runs"), options=job.model_copy(update={"workload": workload}).to_json()
    )
    assert sentence.startswith(trouble.format(path=path))


def test_an_empty_folder_is_named(ask_tensorflow: Ask, folder: Path, tmp_path: Path) -> None:
    (folder / "eel").mkdir()
    job = options(folder, PARSE, BATCH, classes=3).to_json()
    sentence = ask_tensorflow("run_own", root=str(tmp_path), options=job)
    assert sentence.startswith(f"{folder / 'eel'} holds no file ending in .jpg, .jpeg, .png")


def test_photographs_are_taken_where_they_can_be_downloaded(ask_tensorflow: Ask) -> None:
    assert ask_tensorflow("cifar", is_online=True) == {"count": 3, "labels": [0, 1, 2], "shape": [16, 16, 3]}
    sentence = ask_tensorflow("cifar", is_online=False)
    assert sentence == (
        "CIFAR-10 cannot be downloaded (URL fetch failure); connect this machine to the network once, or set workload.data "
        "= digits."
    )
