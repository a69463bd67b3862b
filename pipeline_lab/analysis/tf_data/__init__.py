"""The tf.data pipeline that ran, read from a trace: its stages, what the job waited for, buffers over time."""

from pipeline_lab.analysis.tf_data.fold import analyse as analyse
from pipeline_lab.analysis.tf_data.fold import merge as merge
from pipeline_lab.analysis.tf_data.results import TfData as TfData
