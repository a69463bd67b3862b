from pipeline_lab.options.presets import PRESET_GROUPS, find_preset
from pipeline_lab.pipeline.source import render_source

preset = find_preset("toy")
assert preset.headline == "What does a toy show?"
assert preset.options.training.steps == 20
assert "dataset.batch(16" in render_source(preset.options)
assert PRESET_GROUPS[-1].presets[-1] is preset
