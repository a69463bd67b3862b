from pipeline_lab import analyze
from pipeline_lab.report.formats import find_format
from pipeline_lab.report.report_on import report_result

diagnosis = analyze("sample-baseline")
assert find_format("toy").render(report_result(diagnosis)).decode() == diagnosis.verdict.sentence
