"""Server assignors, which distribute the partitions among the members (section 10.6)."""

from collections.abc import Mapping

from . import range as range_assignor
from . import uniform
from .base import Assignor, AssignorError, GroupSpec, MemberSpec, Share, Target

#: The assignors that come with Kafka, by name.
ASSIGNORS: Mapping[str, Assignor] = {"range": range_assignor.assign, "uniform": uniform.assign}

__all__ = ["ASSIGNORS", "Assignor", "AssignorError", "GroupSpec", "MemberSpec", "Share", "Target"]
