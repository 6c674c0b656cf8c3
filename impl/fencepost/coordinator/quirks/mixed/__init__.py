"""What Kafka does otherwise in groups with members of both protocols, by what it is about."""

from . import downgrade, metadata, upgrade

__all__ = ["downgrade", "metadata", "upgrade"]
