"""The closed system of offsets: owners that follow each other, plain commits and transactions, a log that may lose its
tail. Contract in ``docs/closed-system.md``, part five.

``machine`` drives the model of offsets, ``kept`` says what it keeps; ``rules`` are the guards of everybody else, one
function each, and ``member`` the steps of members; ``closed`` has the components and actions that the explorer sees;
``properties`` and ``mutants`` what is promised and how it breaks; ``abstraction`` its states as the specification's
variables.
"""
