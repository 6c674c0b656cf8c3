"""The closed system of a consumer group (KIP-848): contract in ``docs/closed-system.md``, part two.

- ``coordinator`` drives the group machine; ``translate`` converts between its values and those of ``state``.
- ``client`` has the members.
- ``closed`` has the components and actions that the explorer sees.
- ``properties``, ``steps``, ``witnesses`` and ``mutants``: what is promised and how it breaks.
- ``abstraction``: its states as the specification's variables.
"""
