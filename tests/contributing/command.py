from typer.testing import CliRunner

from pipeline_lab.cli.application import build_app
from pipeline_lab.cli.reference import format_reference

assert "| `toy` | Count the runs of a store. | `--store` |" in format_reference()
assert "Count the runs of a store." in CliRunner().invoke(build_app(), ["--help"]).output
assert CliRunner().invoke(build_app(), ["toy", "--store", "."]).output.strip().isdecimal()
