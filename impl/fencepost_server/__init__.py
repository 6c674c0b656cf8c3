"""The coordinator on a TCP port, with Kafka's wire protocol, for unmodified clients (``docs/serving.md``).

It needs the packages of the extra ``serve``: kio has the messages of the protocol.
"""

from fencepost.extras import require

require("fencepost_server", "serve", "kio", "crc32c")
