from pipeline_lab import analyze
from pipeline_lab.report.renderers.html import write_page
from pipeline_lab.report.report_on import report_result

assert 'id="chart-toy-steps"' in write_page(report_result(analyze("sample-baseline")).content())
