"""The closed system of offsets: successive owners, plain commits and transactions, a log that may lose its tail.
Contract in ``docs/closed-system.md``, part five.

- ``machine`` drives the model of offsets; ``kept`` shows what it stores.
- ``rules``: the guards outside that model, one function each; ``member``: the steps of members.
- ``closed`` has the components and actions that the explorer sees.
- ``properties`` and ``mutants``: what is promised and how it breaks.
- ``abstraction``: its states as the specification's variables.
"""
