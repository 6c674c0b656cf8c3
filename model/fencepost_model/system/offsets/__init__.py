"""The closed system of offsets: owners that follow each other, plain commits and transactions, a log that may lose its
tail. Contract in ``docs/closed-system.md``, part five.

``store`` is what the coordinator keeps; ``rules`` the guards, one function each; ``closed`` has the components and
actions that the explorer sees; ``properties`` and ``mutants`` what is promised and how it breaks; ``abstraction`` its
states as the specification's variables.
"""
