"""Which file and record each example of a watched script was, after its last line: its pipeline's order drawn again on numbers."""

import itertools
import time

from pipeline_lab.capture.recording import Recording
from pipeline_lab.capture.script import keras_hooks, own_loops
from pipeline_lab.runs.run_documents import write_files
from pipeline_lab.runs.run_tables import SAMPLES, TableWriter
from pipeline_lab.units import format_count
from pipeline_lab.worker.recipe.numbered import CannotNumberError, Numbered, number_dataset
from pipeline_lab.worker.recipe.wrapping import ledger

MOST_S = 10.0
MOST_EXAMPLES = 1_000_000
NO_TRAINING = (
    "Which file each example comes from was not found: neither Keras' fit nor a loop of the script was seen to train."
)
NOT_TOLD = "Which file each example comes from was not found: {why}."
DRAWN = (
    "File and record of {count} examples were found by making the script's dataset again on numbers instead of data, after its last line: "
    "the same calls, with random orders drawn once more."
)


def sample_training(recording: Recording) -> None:
    """Write the examples of as many passes as the training made, and their files, into the run; why not, as a remark."""
    fit, own = keras_hooks.last_fit(), own_loops.last_step()
    dataset = fit.dataset if fit is not None else own.dataset if own is not None else None
    if dataset is None:
        recording.note(NO_TRAINING)
        return
    recording.enter("sampling")
    try:
        numbered = number_dataset(dataset)
    except CannotNumberError as error:
        recording.note(NOT_TOLD.format(why=error))
        return
    write_files(recording.own.files, numbered.files)
    recording.note(DRAWN.format(count=format_count(_write(recording, numbered))))


def _write(recording: Recording, numbered: Numbered) -> int:
    trained = ledger.recipe().trained
    writer = TableWriter(recording.own.samples, SAMPLES)
    until_s, step, count = time.monotonic() + MOST_S, itertools.count(), 0
    try:
        for _ in range(max(1, 0 if trained is None else trained.iterators)):
            for pairs in numbered.batches():
                writer.extend([next(step)] * len(pairs), pairs[:, 0].tolist(), pairs[:, 1].tolist())
                count += len(pairs)
                if count >= MOST_EXAMPLES or time.monotonic() > until_s:
                    return count
    finally:
        writer.close()
    return count
