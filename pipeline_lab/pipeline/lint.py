"""Advice on a pipeline's order and sizes, from its options alone, before anything runs."""

from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.pipeline.finding import Finding, Weight
from pipeline_lab.pipeline.generator_rules import GENERATOR_RULES
from pipeline_lab.pipeline.order_rules import ORDER_RULES
from pipeline_lab.pipeline.padding_rules import PADDING_RULES
from pipeline_lab.pipeline.part_rules import PART_RULES
from pipeline_lab.pipeline.service_rules import SERVICE_RULES
from pipeline_lab.pipeline.size_rules import SIZE_RULES
from pipeline_lab.pipeline.views_rules import VIEWS_RULES


def lint_pipeline(options: RunOptions) -> tuple[Finding, ...]:
    """Return all remarks, problems first, each weight in the order of the stages; none on a dataset of the user's own."""
    if not options.is_assembled:
        return ()
    rules = (*ORDER_RULES, *PART_RULES, *PADDING_RULES, *SERVICE_RULES, *SIZE_RULES, *VIEWS_RULES, *GENERATOR_RULES)
    findings = [finding for rule in rules for finding in rule(options)]
    order = list(Weight)
    return tuple(sorted(findings, key=lambda found: (order.index(found.weight), found.stage or 0)))
