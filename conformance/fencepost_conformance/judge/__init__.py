"""Judgement of what was observed: comparisons, the checker of traces, coverage, verdicts, findings and rules."""
