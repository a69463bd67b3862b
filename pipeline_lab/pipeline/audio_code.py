"""The function of the audio workload: a WAV file becomes a spectrum for each frame, as many as the clip is long."""

from pipeline_lab.pipeline.workload_source import WorkloadSource
from pipeline_lab.stages.batches import BucketStage
from pipeline_lab.stages.code import Code, assign_call
from pipeline_lab.stages.read import PerFile, folder_code, read_lines
from pipeline_lab.workloads.audio import AudioWorkload

ENDINGS = (".wav", ".WAV")
"""Of the files that hold clips."""

_PARSE = '''
def parse(clip: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Decode one WAV file into a spectrum for each frame, float32 (frames, FRAME // 2 + 1)."""
    samples, _ = tf.audio.decode_wav(tf.io.read_file(clip["path"]), desired_channels=1)
    frames = tf.signal.frame(samples[:, 0], FRAME, FRAME, pad_end=True)
    spectrum = tf.math.log1p(tf.abs(tf.signal.rfft(frames)))
    length = tf.shape(spectrum)[0]
    return {"spectrum": spectrum, "length": length, "label": clip["label"], "id": clip["id"]}
'''


def audio_source(workload: AudioWorkload) -> WorkloadSource:
    """Write ``parse``, and what lists the clips of a class."""
    code = folder_code(ENDINGS) + Code(constants=(f"FRAME = {workload.frame_samples}",), functions=(_PARSE.strip(),))
    return WorkloadSource(
        about=(
            "files are folders, one for each class, with the WAV files of its clips.",
            'Elements are batches of {"spectrum": float32, "length": frames, "label", "id"}.',
        ),
        code=code,
        written={
            "read": lambda read: read_lines(read, PerFile.FOLDER),
            "bucket_by_sequence_length": lambda stage: [bucket_line(stage, workload)],
        },
        over="over folders of WAV files",
    )


def bucket_line(stage: BucketStage, workload: AudioWorkload) -> str:
    """Write the stage that batches clips by their length."""
    boundaries = ", ".join(str(each) for each in workload.boundaries_in_frames(stage))
    arguments = [
        'lambda clip: clip["length"]',
        f"bucket_boundaries=[{boundaries}]",
        f"bucket_batch_sizes=[{', '.join(str(each) for each in stage.batch_sizes)}]",
        *(["drop_remainder=True"] if stage.drop_remainder else []),
    ]
    seconds = ", ".join(f"{each:g}" for each in stage.boundaries_s)
    return assign_call("dataset.bucket_by_sequence_length", arguments, f"in frames: {seconds} s")
