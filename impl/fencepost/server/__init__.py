"""The coordinator on a TCP port: Kafka's wire protocol for clients as they are (``docs/serving.md``).

It needs the packages of the extra ``serve``: kio has the messages of the protocol.
"""

from fencepost.extras import require

require("fencepost.server", "serve", "kio", "crc32c")
