"""Pictures of the machines, made without any other program."""

from .svg import svg
from .text import dot, mermaid

__all__ = ["dot", "mermaid", "svg"]
