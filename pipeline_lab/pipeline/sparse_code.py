"""The function of the sparse workload: a record becomes one sparse tensor per feature, a label and an id."""

from pipeline_lab.options.workload import SparseWorkload
from pipeline_lab.pipeline.code import Code

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


def sparse_code(workload: SparseWorkload, *, is_vectorised: bool) -> Code:
    """Write ``parse``."""
    constants = (
        "FEATURES = {",
        f'    **{{f"feature_{{number}}": tf.io.VarLenFeature(tf.int64) for number in range({workload.features})}},',
        '    "label": tf.io.FixedLenFeature([], tf.int64),',
        '    "id": tf.io.FixedLenFeature([], tf.int64),',
        "}",
    )
    return Code(constants=constants, functions=((_PARSE_BATCH if is_vectorised else _PARSE).strip(),))
