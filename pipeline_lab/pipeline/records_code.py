"""The function of the records workload: an Example becomes its features, by their names."""

from pipeline_lab.pipeline.workload_source import WorkloadSource
from pipeline_lab.stages.code import INDENT, Code, quote, wanted
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.read import PerFile, read_code, read_lines
from pipeline_lab.workloads.records import RecordFeature, RecordsWorkload

_TYPES = {"int64": "tf.int64", "float32": "tf.float32", "bytes": "tf.string"}


def records_source(workload: RecordsWorkload, pipeline: PipelineOptions, *, has_probe: bool) -> WorkloadSource:
    """Write ``parse``, and a reader that numbers its records where the probe is asked for."""
    per_file = PerFile.PROBED if has_probe else PerFile.PLAIN
    names = {'"features"': True, '"label"': workload.label is not None, '"id"': has_probe}
    about = {
        f"files = sorted(tf.io.gfile.glob({quote(workload.pattern)}))": True,
        f"Elements are batches of {{{', '.join(wanted(names))}}}; the features are a dict by name.": True,
        "With the sample probe: each example carries file index × 2**40 + record number as its id.": has_probe,
    }
    constants = ["FEATURES = {", *(f"{INDENT}{_spec(each)}," for each in workload.parsed_features), "}"]
    parse = _parse(workload, is_vectorised=pipeline.is_vectorised("parse"), has_probe=has_probe)
    return WorkloadSource(
        about=wanted(about),
        code=read_code(per_file) + Code(constants=tuple(constants), functions=(parse,)),
        written={"read": lambda read: read_lines(read, per_file)},
    )


def _spec(feature: RecordFeature) -> str:
    kind = _TYPES[feature.kind]
    if feature.length is None:
        return f"{quote(feature.name)}: tf.io.RaggedFeature({kind})"
    shape = [] if feature.length == 1 else [feature.length]
    return f"{quote(feature.name)}: tf.io.FixedLenFeature({shape}, {kind})"


def _parse(workload: RecordsWorkload, *, is_vectorised: bool, has_probe: bool) -> str:
    records = "records" if is_vectorised else "record"
    argument = "element: dict[str, tf.Tensor]" if has_probe else f"{records}: tf.Tensor"
    function = "parse_example" if is_vectorised else "parse_single_example"
    given = 'element["record"]' if has_probe else records
    fields = {
        '"features": features': True,
        f'"label": features.pop({quote(workload.label or "")})': workload.label is not None,
        '"id": element["id"]': has_probe,
    }
    return "\n".join(
        [
            f"def parse({argument}) -> dict[str, object]:",
            f'{INDENT}"""Take {"a batch of Examples" if is_vectorised else "an Example"} apart."""',
            f"{INDENT}features = tf.io.{function}({given}, FEATURES)",
            f"{INDENT}return {{{', '.join(wanted(fields))}}}",
        ]
    )
