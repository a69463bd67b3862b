"""What one can do to a draft of options."""

from typing import Literal

import pytest

from pipeline_lab.options.presets import PRESETS, find_preset
from pipeline_lab.options.run_options import read_options
from pipeline_lab.stages.batches import BatchStage
from pipeline_lab.ui.shared import draft
from pipeline_lab.ui.shared.draft import (
    add_stage,
    change_workload,
    describe_stage,
    move_stage,
    remove_stage,
    stages_to_offer,
    start_draft,
    with_features,
)
from pipeline_lab.workloads.records import parse_features
from pipeline_lab.workloads.registry import WORKLOADS


def kinds(draft) -> list[str]:
    return [stage["stage"] for stage in draft.stages]


def draft_of(name: str):
    return start_draft(find_preset(name).options, f"preset:{name}")


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_a_fresh_draft_is_the_preset(preset):
    assert read_options(start_draft(preset.options, "").document) == preset.options


def test_a_stage_keeps_its_key_when_it_moves():
    moved = move_stage(draft_of("synthetic"), 1, 1)
    assert kinds(moved) == ["read", "map", "repeat", "batch", "prefetch"]
    assert moved.stage_keys == (0, 2, 1, 3, 4)
    assert move_stage(moved, 2, -1).document == draft_of("synthetic").document


@pytest.mark.parametrize(("index", "by"), [(0, -1), (4, 1)])
def test_a_stage_does_not_leave_the_pipeline(index, by):
    draft = draft_of("synthetic")
    assert move_stage(draft, index, by) == draft


def test_a_removed_stage_is_gone_and_its_key_is_not_used_again():
    removed = remove_stage(draft_of("synthetic"), 4)
    assert kinds(removed) == ["read", "repeat", "map", "batch"]
    added = add_stage(add_stage(removed, "cache"), "prefetch")
    assert kinds(added) == ["read", "repeat", "map", "batch", "cache", "prefetch"]
    assert len(set(added.stage_keys)) == 6


def test_a_new_stage_goes_before_the_final_prefetch():
    assert kinds(add_stage(draft_of("synthetic"), "cache"))[-2:] == ["cache", "prefetch"]


def test_a_copy_to_the_device_goes_behind_all_others():
    assert kinds(add_stage(draft_of("synthetic"), "prefetch_to_device"))[-2:] == ["prefetch", "prefetch_to_device"]


def test_changing_a_draft_leaves_the_old_one_alone():
    draft = draft_of("synthetic")
    before = kinds(draft)
    remove_stage(draft, 0)
    move_stage(draft, 0, 1)
    assert kinds(draft) == before


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
@pytest.mark.parametrize("kind", ["images", "synthetic", "audio"])
def test_changing_the_workload_gives_valid_options(preset, kind):
    changed = change_workload(start_draft(preset.options, ""), kind)
    options = read_options(changed.document)
    assert options.workload.kind == kind
    assert len(changed.stage_keys) == len(set(changed.stage_keys)) == len(options.pipeline.stages)


def test_own_stages_take_the_place_of_the_others():
    assert kinds(change_workload(draft_of("synthetic"), "images")) == [
        "read",
        "repeat",
        "parse",
        "augment",
        "batch",
        "prefetch",
    ]


def test_clips_are_padded_and_parsed_before_the_batch():
    audio = change_workload(draft_of("optimised"), "audio")
    assert kinds(audio) == ["read", "shuffle", "repeat", "parse", "batch", "prefetch"]
    assert audio.stages[4]["mode"] == "padded_batch"
    assert "bucket_by_sequence_length" in stages_to_offer(remove_stage(audio, 4))
    assert "bucket_by_sequence_length" not in stages_to_offer(audio)
    bucketed = change_workload(draft_of("audio-bucketed"), "synthetic")
    assert kinds(bucketed) == ["read", "shuffle", "repeat", "map", "batch", "prefetch"]


def test_features_that_were_found_fill_the_form_anew():
    records = change_workload(draft_of("synthetic"), "records")
    assert kinds(records) == ["read", "repeat", "batch", "parse", "prefetch"]
    workload = {**records.document["workload"], "pattern": "/data/*"}
    filled = with_features(records, workload, parse_features("label:int64, tokens:int64[*]"))
    options = read_options(filled.document)
    assert (options.workload.label, options.workload.features) == ("label", "label:int64, tokens:int64[*]")
    assert filled.generation == records.generation + 1


def test_only_stages_that_may_be_added_are_offered():
    offered = stages_to_offer(draft_of("baseline"))
    assert offered[:5] == ["views", "cache", "snapshot", "save", "shuffle"]
    assert "batch" not in offered
    assert "batch" in stages_to_offer(add_stage(draft_of("baseline"), "unbatch"))
    assert "map" not in offered
    assert "map" in stages_to_offer(remove_stage(draft_of("synthetic"), 2))


def test_a_stage_is_described_by_what_differs_from_its_defaults():
    assert describe_stage({"stage": "shuffle", "buffer_size": 2048, "reshuffle_each_iteration": False}) == (
        "buffer_size 2048, reshuffle_each_iteration no"
    )
    assert describe_stage({"stage": "repeat", "count": None}) == ""


def test_a_workload_of_ones_own_brings_its_stages_and_another_gets_the_usual_ones():
    own = change_workload(draft_of("baseline"), "module")
    assert (kinds(own), own.document["workload"]["kind"]) == ([], "module")
    back = change_workload(own, "images")
    assert kinds(back) == ["read", "parse", "augment", "batch", "prefetch"]
    assert read_options(back.document).workload.kind == "images"


def test_views_are_added_behind_parse_and_only_when_asked_for():
    assert kinds(add_stage(draft_of("baseline"), "views"))[:5] == ["read", "shuffle", "repeat", "parse", "views"]


def test_another_way_to_batch_stays_where_the_workload_changes(monkeypatch):
    class Pairs(BatchStage):
        stage: Literal["pairs"] = "pairs"

    monkeypatch.setitem(draft.STAGE_TYPES, "pairs", Pairs)
    monkeypatch.setattr(draft, "_BATCHES", ("batch", "pairs"))
    stage = {"stage": "pairs", "size": 2}
    assert draft._suited(stage, WORKLOADS["images"]()) == stage
