import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_lab.fields import parse_file_sizes
from pipeline_lab.options.profiling import ProfilingOptions
from pipeline_lab.options.race_options import RaceOptions
from pipeline_lab.options.training import TrainingOptions
from pipeline_lab.options.tune_options import TuneOptions
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.read import ReadStage
from pipeline_lab.stages.registry import STAGE_TYPES
from pipeline_lab.ui.shared.field_editors import label_of, write_file_sizes
from pipeline_lab.workloads.images import ImagesWorkload
from pipeline_lab.workloads.registry import WORKLOADS
from pipeline_lab.workloads.synthetic import SyntheticWorkload


@pytest.mark.slow
@given(st.lists(st.integers(1, 9999), min_size=1, max_size=50))
def test_file_sizes_are_written_as_they_are_read(sizes):
    assert parse_file_sizes(write_file_sizes(sizes)) == tuple(sizes)


def test_equal_files_are_written_short():
    assert write_file_sizes([512] * 8) == "8x512"
    assert write_file_sizes([1000, 2000, 2000]) == "1000,2x2000"


def test_what_was_typed_wrong_stays_as_it_is():
    assert write_file_sizes("8y512") == "8y512"


def test_labels_carry_units():
    assert label_of("map_ms") == "Map (ms)"
    assert label_of("memory_ceiling_mb") == "Memory ceiling (MB)"
    assert label_of("num_parallel_calls", ReadStage) == "Parallel calls"


def test_labels_tell_the_fields_of_a_model_apart():
    for model in (*STAGE_TYPES.values(), ImagesWorkload, SyntheticWorkload, TrainingOptions, ProfilingOptions):
        labels = [label_of(name, model) for name in model.model_fields]
        assert len(set(labels)) == len(labels)


def test_what_models_say_for_the_form_is_about_fields_that_they_have():
    models = (PipelineOptions, TrainingOptions, ProfilingOptions, RaceOptions, TuneOptions)
    for model in (*STAGE_TYPES.values(), *WORKLOADS.values(), *models):
        own = {*vars(model).get("labels", {}), *vars(model).get("left_empty", {}), *model.shown_with}
        assert own | {field for field, _ in model.shown_with.values()} <= set(model.model_fields)
