"""What Kafka's own classes say of their settings when nobody sets them."""

from .ask import Defaults, ask_defaults

__all__ = ["Defaults", "ask_defaults"]
