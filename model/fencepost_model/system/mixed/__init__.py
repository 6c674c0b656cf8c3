"""The closed system of a mixed group: contract in ``docs/closed-system.md``, part three.

- ``machine`` drives the coordinator, which converts the group from one kind to the other; ``coordinator`` talks to it
  in messages.
- The clients are those of the other two closed systems.
- ``closed`` has the components and actions that the explorer sees.
- ``properties``, ``witnesses`` and ``mutants``: what is promised and how it breaks.
- ``abstraction``: its states as the specification's variables.
"""
