from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.stages.batches import BatchStage
from pipeline_lab.stages.functions import AugmentStage, LookupStage, ParseStage, ViewsStage
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.read import ReadStage
from pipeline_lab.workloads.features import FeaturesWorkload
from pipeline_lab.workloads.images import ImagesWorkload
from pipeline_lab.workloads.synthetic import SyntheticWorkload


def test_an_image_grows_from_jpeg_to_pixels_to_floats_to_a_batch() -> None:
    options = RunOptions(
        workload=ImagesWorkload(data="random", image_size=10),
        pipeline=PipelineOptions(
            stages=(ReadStage(), ParseStage(), AugmentStage(pad=0, crop=8, cutout=0), BatchStage(size=3))
        ),
    )
    record, pixels, floats, batch = options.elements
    assert record.size_bytes == 255 + 64  # 85 % of 300 bytes of pixels, and the Example around them
    assert pixels.size_bytes == 300 + 16
    assert floats.size_bytes == 4 * 3 * 8 * 8 + 16
    assert batch.size_bytes == 3 * floats.size_bytes
    assert (record.is_decoded, pixels.is_decoded) == (False, True)


def test_without_a_crop_the_padding_stays() -> None:
    options = RunOptions(
        workload=ImagesWorkload(image_size=8),
        pipeline=PipelineOptions(stages=(ReadStage(), ParseStage(), AugmentStage(pad=1, cutout=0), BatchStage())),
    )
    assert options.elements[2].size_bytes == 4 * 3 * 10 * 10 + 16


def test_a_users_records_have_no_known_size_until_they_are_parsed() -> None:
    options = RunOptions(
        workload=ImagesWorkload(data="files", pattern="/data/*", image_size=8),
        pipeline=PipelineOptions(stages=(ReadStage(), BatchStage(size=2), ParseStage())),
    )
    assert [element.size_bytes for element in options.elements] == [None, None, 2 * (192 + 16)]


def test_synthetic_records_are_as_long_as_asked_for() -> None:
    options = RunOptions(
        workload=SyntheticWorkload(element_bytes=100),
        pipeline=PipelineOptions(stages=(ReadStage(), BatchStage(size=2))),
    )
    assert [element.size_bytes for element in options.elements] == [100, 200]


def test_a_caption_gets_its_vector_where_it_is_looked_up() -> None:
    workload = FeaturesWorkload(vector_size=100, caption_words=10)
    options = RunOptions(
        workload=workload,
        pipeline=PipelineOptions(stages=(ReadStage(), ParseStage(), LookupStage(), BatchStage(size=3))),
    )
    record, numbers, vector, batch = (element.size_bytes for element in options.elements)
    assert record == 2 * 10 + 2 * 64
    assert numbers == 8 * 10 + 8 + 16  # words, the image's number, label and id
    assert vector == numbers + 400
    assert batch == 3 * vector


def test_a_view_is_smaller_than_its_image_and_an_example_of_its_own() -> None:
    stages = (ReadStage(), ParseStage(), ViewsStage(size=6), AugmentStage(pad=1, cutout=0), BatchStage(size=3))
    options = RunOptions(workload=ImagesWorkload(image_size=8), pipeline=PipelineOptions(stages=stages))
    _, pixels, view, floats, batch = (element.size_bytes for element in options.elements)
    assert (pixels, view, floats) == (3 * 8 * 8 + 16, 3 * 6 * 6 + 16, 4 * 3 * 8 * 8 + 16)
    assert batch == 3 * floats
