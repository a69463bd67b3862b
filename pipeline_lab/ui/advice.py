"""Advice on the pipeline in the form, before anything runs."""

import streamlit as st

from pipeline_lab.options.run import RunOptions
from pipeline_lab.pipeline.finding import Finding, Weight
from pipeline_lab.pipeline.lint import lint_pipeline
from pipeline_lab.ui.text import escape

_COLOURS = {Weight.PROBLEM: "orange", Weight.ADVICE: "blue", Weight.FACT: "gray"}


def show_advice(options: RunOptions) -> None:
    """Show what the order and sizes of the stages are likely to cost; what they will hold, on request."""
    findings = lint_pipeline(options)
    for finding in findings:
        if finding.weight is not Weight.FACT:
            st.markdown(_line(options, finding))
    facts = [finding for finding in findings if finding.weight is Weight.FACT]
    if facts:
        with st.expander("What the stages will hold"):
            st.markdown("  \n".join(_line(options, finding) for finding in facts))


def _line(options: RunOptions, finding: Finding) -> str:
    place = (
        "pipeline" if finding.stage is None else f"{finding.stage + 1} {options.pipeline.stages[finding.stage].stage}"
    )
    return f":{_COLOURS[finding.weight]}-badge[{finding.weight.value} · {place}] {escape(finding.sentence)}"
