"""The closed system of ``docs/closed-system.md``: the group machine, clients, the network and everything that can go
wrong."""
