"""A change as a command: what is printed can be pasted, and gives exactly the options that were meant."""

import shlex

import pytest
from hypothesis import given, settings

from pipeline_lab.advice.option_changes import find_settings, write_command
from pipeline_lab.cli.arguments import apply_settings
from pipeline_lab.options.run_options import RunOptions
from tests.support.measured import mapped, options, with_workload
from tests.support.option_strategies import RUN_OPTIONS


def pasted(before: RunOptions, command: str) -> RunOptions:
    """Return what a shell and the command line make of a command's settings."""
    words = shlex.split(command)
    return apply_settings(before, [words[at + 1] for at, word in enumerate(words) if word == "--set"])


def test_a_field_of_a_stage_is_set_by_the_name_of_the_stage():
    assert find_settings(options(), options(mapped(4))) == ("pipeline.map.num_parallel_calls=4",)
    twice = ({"stage": "shuffle", "buffer_size": 5}, {"stage": "map"}, {"stage": "shuffle", "buffer_size": 7})
    larger = (*twice[:2], {"stage": "shuffle", "buffer_size": 9})
    assert find_settings(options(*twice), options(*larger)) == ("pipeline.stages.4.buffer_size=9",)


def test_other_stages_are_set_as_a_whole_without_what_stays_at_its_default():
    (setting,) = find_settings(options(prefetch=None), options())
    assert setting.startswith('pipeline.stages=[{"stage": "read"}, {"stage": "repeat"}, {"stage": "map"}, ')
    assert setting.endswith('{"stage": "prefetch", "buffer_size": 2}]')


def test_the_command_is_one_for_a_shell():
    command = write_command("my run", find_settings(options(), with_workload(options(), map_ms=0.5)))
    assert command == "pipeline-lab what-if 'my run' --race --set workload.map_ms=0.5"


@settings(max_examples=40)
@given(RUN_OPTIONS, RUN_OPTIONS)
@pytest.mark.slow
def test_a_pasted_command_gives_the_options_that_were_meant(before: RunOptions, after: RunOptions):
    found = pasted(before, write_command("run", find_settings(before, after)))
    assert found.model_copy(update={"name": after.name}) == after
