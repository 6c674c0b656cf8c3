"""Server assignors, which distribute the partitions among the members (section 10.6)."""

from collections.abc import Mapping

from fencepost.protocol.server_assignor import Assignor, AssignorError, GroupSpec, MemberSpec, Share, Target

from . import range as range_assignor
from . import uniform

#: The assignors that come with Kafka, by name.
ASSIGNORS: Mapping[str, Assignor] = {"range": range_assignor.assign, "uniform": uniform.assign}

__all__ = ["ASSIGNORS", "Assignor", "AssignorError", "GroupSpec", "MemberSpec", "Share", "Target"]
