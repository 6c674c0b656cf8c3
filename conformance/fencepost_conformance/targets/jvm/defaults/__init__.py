"""The default settings of Kafka's own classes."""

from .ask import Defaults, ask_defaults

__all__ = ["Defaults", "ask_defaults"]
