"""What Kafka does otherwise in groups with members of both protocols, by what it is about."""

from . import classic_members, downgrade, metadata, upgrade

__all__ = ["classic_members", "downgrade", "metadata", "upgrade"]
