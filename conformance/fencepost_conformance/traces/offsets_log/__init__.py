"""The records of an offsets topic: from log segments, from a dump of ``fencepost decode``, or from a running broker."""
