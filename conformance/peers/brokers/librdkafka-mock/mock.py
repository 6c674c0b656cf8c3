"""Run librdkafka's mock cluster of one broker: print its address, and run until the process is ended. With
``--version``, only print the version of librdkafka."""

from __future__ import annotations

import ctypes
import signal
import sys
from pathlib import Path

import confluent_kafka

#: it ends the process for each subscription with topic names and without a regular expression, so it is turned off
CONSUMER_GROUP_HEARTBEAT = 68

if "--version" in sys.argv[1:]:
    print(confluent_kafka.libversion()[0])
    sys.exit()
(library,) = Path(confluent_kafka.__file__).parents[1].glob("confluent_kafka.libs/librdkafka*.so*")
lib = ctypes.CDLL(str(library))
pointer, text = ctypes.c_void_p, ctypes.c_char_p
for name, result, arguments in (
    ("rd_kafka_conf_new", pointer, []),
    ("rd_kafka_new", pointer, [ctypes.c_int, pointer, text, ctypes.c_size_t]),
    ("rd_kafka_mock_cluster_new", pointer, [pointer, ctypes.c_int]),
    ("rd_kafka_mock_cluster_bootstraps", text, [pointer]),
    ("rd_kafka_mock_group_initial_rebalance_delay_ms", None, [pointer, ctypes.c_int32]),
    ("rd_kafka_mock_set_apiversion", ctypes.c_int, [pointer, ctypes.c_int16, ctypes.c_int16, ctypes.c_int16]),
):
    function = getattr(lib, name)
    function.restype, function.argtypes = result, arguments

client = lib.rd_kafka_new(0, lib.rd_kafka_conf_new(), ctypes.create_string_buffer(512), 512)
cluster = lib.rd_kafka_mock_cluster_new(client, 1)
lib.rd_kafka_mock_group_initial_rebalance_delay_ms(cluster, 0)
lib.rd_kafka_mock_set_apiversion(cluster, CONSUMER_GROUP_HEARTBEAT, -1, -1)
print(lib.rd_kafka_mock_cluster_bootstraps(cluster).decode(), flush=True)
signal.pause()
