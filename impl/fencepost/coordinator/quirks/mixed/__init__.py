"""Deviations of Kafka in groups with members of both protocols, by subject."""

from . import classic_members, downgrade, metadata, upgrade

__all__ = ["classic_members", "downgrade", "metadata", "upgrade"]
