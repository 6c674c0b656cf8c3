"""asyncio code under test in virtual time: one seed decides the order of tasks, every delay and every failure.

``loop`` runs a coroutine on an event loop whose clock jumps from timer to timer. ``store`` is a store that is slow and
fails, ``network`` a network that delays, stalls and closes connections. ``requests`` drives ``GroupBroker`` with
clients that send requests; ``workers`` drives workers, in the same process or over the Kafka port. Both compare what
they see with a small reference after every answer.
"""
