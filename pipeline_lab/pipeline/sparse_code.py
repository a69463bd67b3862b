"""The function of the sparse workload: a record becomes one sparse tensor per feature, a label and an id."""

from pipeline_lab.pipeline.workload_source import WorkloadSource
from pipeline_lab.stages.code import Code
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.read import PerFile, read_lines
from pipeline_lab.workloads.sparse import SparseWorkload

_PARSE = '''
def parse(record: tf.Tensor) -> dict[str, tf.Tensor | tf.SparseTensor]:
    """Read one Example; each feature holds the values that it has, however many."""
    return tf.io.parse_single_example(record, FEATURES)
'''

_PARSE_BATCH = '''
def parse(records: tf.Tensor) -> dict[str, tf.Tensor | tf.SparseTensor]:
    """Read a batch of Examples; each feature holds the values that it has, however many."""
    return tf.io.parse_example(records, FEATURES)
'''


def sparse_source(workload: SparseWorkload, pipeline: PipelineOptions) -> WorkloadSource:
    """Write ``parse``."""
    constants = (
        "FEATURES = {",
        f'    **{{f"feature_{{number}}": tf.io.VarLenFeature(tf.int64) for number in range({workload.features})}},',
        '    "label": tf.io.FixedLenFeature([], tf.int64),',
        '    "id": tf.io.FixedLenFeature([], tf.int64),',
        "}",
    )
    parse = (_PARSE_BATCH if pipeline.is_vectorised("parse") else _PARSE).strip()
    return WorkloadSource(
        about=(f"Elements are batches of {workload.features} sparse features, a label and an id.",),
        code=Code(constants=constants, functions=(parse,)),
        written={"read": lambda read: read_lines(read, PerFile.PLAIN)},
    )
