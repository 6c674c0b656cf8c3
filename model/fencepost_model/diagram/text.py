"""Text from which other programs draw pictures: Mermaid and Graphviz' dot."""

from __future__ import annotations

from ..machines import ANY, MachineSpec
from .edges import edges


def mermaid(spec: MachineSpec) -> str:
    """Return a Mermaid state diagram."""
    lines = ["---", f"title: {spec.title}", "---", "stateDiagram-v2"]
    lines += [f'  state "{state}<br/>{", ".join(rules)}" as {state}' for state, rules in spec.states.items()]
    if any(edge.source == ANY for edge in edges(spec)):
        lines.append('  state "any state" as any')
    lines += [f"  [*] --> {state}: {', '.join(rules)}" for state, rules in spec.initial.items()]
    for edge in edges(spec):
        source = "any" if edge.source == ANY else edge.source
        lines.append(f"  {source} --> {edge.dest}: {'<br/>'.join(edge.labels)}")
    return "\n".join(lines) + "\n"


def dot(spec: MachineSpec) -> str:
    """Return a Graphviz digraph."""
    lines = [f'digraph "{spec.name}" {{', f'  label="{spec.title}"; labelloc=t; node [shape=box, style=rounded];']
    lines += [f'  "{state}" [label="{state}\\n{", ".join(rules)}"];' for state, rules in spec.states.items()]
    for state, rules in spec.initial.items():
        lines.append(f'  "new {state}" [shape=point];')
        lines.append(f'  "new {state}" -> "{state}" [label="{", ".join(rules)}"];')
    if any(edge.source == ANY for edge in edges(spec)):
        lines.append(f'  "{ANY}" [label="any state", style=dashed];')
    for edge in edges(spec):
        label = "".join(f"{line}\\l" for line in edge.labels)  # \\l ends a left-aligned line
        lines.append(f'  "{edge.source}" -> "{edge.dest}" [label="{label}"];')
    return "\n".join([*lines, "}"]) + "\n"
