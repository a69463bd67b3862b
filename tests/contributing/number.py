import io

from rich.console import Console

from pipeline_lab import analyze, compare
from pipeline_lab.analysis.metrics.metric_rows import number_rows
from pipeline_lab.analysis.metrics.metrics import find_metric
from pipeline_lab.report.overview import overview
from pipeline_lab.report.renderers.markdown import write_markdown
from pipeline_lab.report.renderers.terminal import render_terminal
from pipeline_lab.ui.shared.glossary import GLOSSARY
from pipeline_lab.units import format_duration

diagnosis = analyze("sample-baseline")
total = format_duration(diagnosis.job_steps.total_ns)
assert dict(number_rows(diagnosis))["Toy time"] == total
assert find_metric("toy_total_ms").read(diagnosis) == diagnosis.to_json()["job_steps"]["total_ms"]
console = Console(file=io.StringIO(), width=160)
console.print(render_terminal(overview(diagnosis)))
assert "Toy time" in console.file.getvalue()
assert f"| Toy time | {total} |" in write_markdown(overview(diagnosis), {})
assert GLOSSARY["Toy time"] == "All of the measured steps together."
document = compare("sample-baseline", "sample-optimised").to_json()
assert "toy_total_ms" in {each["name"] for each in document["measures"]}
