"""Makes the files of evidence in ``conformance/evidence``, which ``fencepost rules`` reads."""
