"""Conformance suite: traces, checker, targets, Spark pipeline, reports, command line."""
