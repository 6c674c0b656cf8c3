"""Executable model of the group protocol, explorer, and bridge to TLC.

It needs the packages of the extra ``model``.
"""

from fencepost.extras import require

require("fencepost_model", "model", "transitions")
