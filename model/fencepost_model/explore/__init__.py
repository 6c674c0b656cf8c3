"""Explicit-state exploration: breadth first, shortest counter-examples, fair cycles. See ``docs/checking.md``."""

from fencepost.extras import require

require("fencepost_model.explore", "model", "numpy")
