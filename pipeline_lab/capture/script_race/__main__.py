"""``python -m pipeline_lab.capture.script_race RUN_FOLDER``: run a script, and race changed pipelines inside its training.

Nothing is imported that the script could notice before it loads TensorFlow itself. The script ends where the answer is
known; its exit handlers do not run, since what it has trained is thrown away.
"""

import os
import sys
import traceback
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from pipeline_lab.capture.script.at_import import after_import, is_imported
from pipeline_lab.capture.watch_script import run_module, run_script
from pipeline_lab.errors import PipelineLabError, RunFailedError
from pipeline_lab.runs.run_events import FailureEvent, NoteEvent, PhaseEvent
from pipeline_lab.runs.run_folder import RunFolder, read_record
from pipeline_lab.worker.job_context import StopRequest
from pipeline_lab.worker.note.event_log import EventLog
from pipeline_lab.worker.note.failures import explain_user_error, report_failure

if TYPE_CHECKING:
    from pipeline_lab.capture.script_race.script_race import ScriptRace

NO_TRAINING = (
    "The script ended without training on batches that could come from another pipeline: it takes Model.fit on a dataset, or a "
    "loop over one with a GradientTape, outside of tf.function. A script that goes on from a checkpoint at its end trains no more; delete it."
)


class RacedScript:
    """One script and the race inside it.

    Args:
        folder: Of the race.
        document: Its options.
    """

    def __init__(self, folder: RunFolder, document: dict[str, Any]) -> None:
        self._folder, self._document = folder, document
        self._log, self._stop = EventLog(folder.events), StopRequest()
        self._race: ScriptRace | None = None
        self._failure: BaseException | None = None

    def run(self) -> int:
        """Run the script until its race is over; return the exit code."""
        self._stop.listen(self._leave_early)
        self._log.write(PhaseEvent("script"))
        after_import("tensorflow", self._begin)
        for package in ("keras", "tf_keras"):
            after_import(package, _hook_keras)
        document = self._document
        os.chdir(document["folder"])
        try:
            (run_module if document.get("is_module") else run_script)(document["script"], list(document["arguments"]))
        except SystemExit as error:
            return self._end(error)
        except BaseException as error:
            return self._end(error)
        return self._end(None)

    def _begin(self) -> None:
        """Race from now on: TensorFlow is loaded."""
        try:
            from pipeline_lab.capture.script.noted_datasets import note_new_datasets
            from pipeline_lab.capture.script_race import switching
            from pipeline_lab.capture.script_race.script_race import ScriptRace
            from pipeline_lab.options.race_options import read_script_race
            from pipeline_lab.worker.job_process import keep_generated_code_in
            from pipeline_lab.worker.recipe.replaying import keep_calls

            keep_generated_code_in(self._folder.scratch)
            note_new_datasets()
            keep_calls()
            self._race = ScriptRace(self._folder, read_script_race(self._document), self._log, self._stop)
            switching.begin(self._race)
        except Exception as error:  # the importer drops it
            self._failure = error
            raise

    def _end(self, error: BaseException | None) -> int:
        """Write down how the script ended."""
        race = self._race
        failure = self._failure if race is None else race.failure
        if failure is not None:
            report_failure(self._folder, self._log, failure)
            return 1
        if (race is not None and race.is_over) or self._stop.is_set:
            return 0
        home = self._folder_of_script()
        if error is not None and not (isinstance(error, SystemExit) and not error.code):
            details = "".join(traceback.format_exception(error))
            self._log.write(FailureEvent(explain_user_error(error, home, "The script"), details))
            return 1
        if race is None or not race.has_begun:
            report_failure(self._folder, self._log, RunFailedError(NO_TRAINING))
            return 1
        self._log.write(
            NoteEvent(
                f"The script ended after {race.rounds} rounds, before the answer was known; let it train for longer."
            )
        )
        return 0

    def _folder_of_script(self) -> Path:
        document = self._document
        path = Path(document["folder"]) / document["script"]
        return path.resolve().parent if path.is_file() else Path(document["folder"])

    def _leave_early(self, _number: int, _frame: FrameType | None) -> None:
        """Stop: the race ends with its block; before there is one the script ends at once."""
        self._stop.request()
        if self._race is None or not self._race.has_begun:
            os._exit(0)


def _hook_keras() -> None:
    """Hook a Keras that is imported after TensorFlow; one that TensorFlow imports is hooked where the race begins."""
    if is_imported("tensorflow"):
        from pipeline_lab.capture.script_race.switching import hook_keras

        hook_keras()


def main() -> None:
    folder, code = RunFolder(Path(sys.argv[1])), 1
    try:
        code = RacedScript(folder, read_record(folder).options or {}).run()
    except PipelineLabError as error:
        print(f"pipeline-lab: {error}", file=sys.stderr)  # noqa: T201 (the run's log)
    finally:
        from pipeline_lab.worker.job_process import leave_process

        sys.stdout.flush()
        sys.stderr.flush()
        leave_process(code)


if __name__ == "__main__":
    main()
