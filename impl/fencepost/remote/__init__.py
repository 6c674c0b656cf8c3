"""Groups of a Kafka broker, or of ``fencepost serve``, for workers of this program.

It needs the packages of the extra ``serve``.
"""

from fencepost.extras import require

require("fencepost.remote", "serve", "kio", "crc32c")

from .cluster import Refused  # noqa: E402  # an import that fails would not say what to install
from .groups import Groups  # noqa: E402
from .sasl import LoginFailed, Sasl  # noqa: E402

__all__ = ["Groups", "LoginFailed", "Refused", "Sasl"]
