"""``python -m pipeline_lab`` is ``pipeline-lab``."""

from pipeline_lab.cli import main

main()
