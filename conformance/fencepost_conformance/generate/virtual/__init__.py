"""Tests of asyncio code in virtual time: one seed decides the order of tasks, every delay and every failure.

``loop`` runs a coroutine on an event loop whose clock jumps from timer to timer. ``store`` is a store that is slow and
fails, ``network`` a network that delays, stalls and closes connections. ``requests`` tests ``GroupBroker`` with clients
that send requests; ``workers`` tests workers, in the same process or over the Kafka port. Both compare each answer with
a small reference model.
"""
