"""Presets that many tests start from."""

from pipeline_lab.options.presets import find_preset

BASELINE = find_preset("baseline")
OPTIMISED = find_preset("optimised")
SYNTHETIC = find_preset("synthetic")
UNEQUAL_FILES = find_preset("unequal-files")
COVERING_SHUFFLE = find_preset("covering-shuffle")
VIEWS_APART = find_preset("views-apart")
SPARSE = find_preset("sparse")
GENERATOR = find_preset("generator")
FEATURES_LOOKUP = find_preset("features-lookup")
AUDIO_PADDED = find_preset("audio-padded")
AUDIO_BUCKETED = find_preset("audio-bucketed")
AUDIO_PRESETS = (AUDIO_PADDED, AUDIO_BUCKETED, find_preset("audio-ragged"))
