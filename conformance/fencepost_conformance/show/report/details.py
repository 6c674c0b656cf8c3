"""The panel beside the picture for one step: its full description, its rules, and the state of a group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape

from ...judge.rulebook.texts import brief
from .holdings import GroupAt, MemberAt
from .names import compact
from .palette import swatch
from .steps import Append, StepWords


def panel(step: StepWords) -> str:
    """Return the panel of a step, without the states of the groups."""
    parts = [f'<h3>step {step.index} <span class="dim">{step.at_ms:,} ms · {step.kind.value}</span></h3>']
    if step.what:
        who = "" if step.who == step.whom else f"<b>{escape(step.who)}</b> → {escape(step.whom)}: "
        parts.append(f"<p>{who}{escape(step.what)}</p>")
    for answer in step.answers:
        bad = ' class="bad"' if answer.error else ""
        parts.append(f"<p{bad}>→ <b>{escape(answer.to)}</b> #{answer.request_id} {escape(answer.text)}</p>")
    if step.error:
        parts.append(f'<p class="bad">exception inside: {escape(step.error)}</p>')
    if step.rules:
        parts.append(f"<h4>rules</h4>{''.join(map(_rule, step.rules))}")
    if step.append is not None:
        parts.append(_list(_heading(step.append), step.append.records, bad=step.append.failed))
    parts += [_list("timers", step.timers), _list("started beside", step.tasks)]
    parts += [f'<p class="dim">{escape(group.group)}: gone</p>' for group in step.groups if group.gone]
    return "".join(parts)


def _heading(append: Append) -> str:
    last = append.end - 1
    places = f"{append.first}" if append.first == last else f"{append.first}–{last}"
    return f"written at {places}: {append.fate or 'replication unknown'}"


def _list(title: str, texts: Iterable[str], *, bad: bool = False) -> str:
    rows = "".join(f"<li>{escape(text)}</li>" for text in texts)
    kind = ' class="bad"' if bad else ""
    return f"<h4{kind}>{escape(title)}</h4><ul>{rows}</ul>" if rows else ""


def _rule(rule_id: str) -> str:
    """Return a rule's id; its text is a tooltip, and shown on a click or by a key."""
    text = escape(brief(rule_id), quote=True)
    return f'<details class="rule"><summary title="{text}">{escape(rule_id)}</summary>{text}</details>'


def group_panel(group: GroupAt, colours: Mapping[str, int]) -> str:
    """Return the state of a group. ``colours``: each member's colour by number."""
    epochs = ", ".join(f"{name} {number}" for name, number in group.epochs)
    head = f"<b>{escape(group.group)}</b> ({group.kind}) {escape(group.state)} {escape(epochs)}"
    notes = "".join(f'<div class="dim">{escape(note)}</div>' for note in group.notes)
    rows = "".join(_member(member, colours) for member in group.members)
    has_targets = any(member.target is not None for member in group.members)
    columns = f"<tr><th>member</th><th>epochs</th><th>holds</th>{'<th>target</th>' if has_targets else ''}</tr>"
    table = f"<table>{columns}{rows}</table>" if rows else ""
    return f"<div>{head}</div>{notes}{table}"


def _member(member: MemberAt, colours: Mapping[str, int]) -> str:
    about = escape(", ".join(each for each in (member.protocol, member.state) if each)).replace("_", "_<wbr>")
    holds = escape(member.other or compact(member.holds))
    leaving = f'<div class="leaving">gives up {escape(compact(member.giving_up))}</div>' if member.giving_up else ""
    target = "" if member.target is None else f"<td>{escape(compact(member.target))}</td>"
    return (
        f'<tr><td>{swatch(colours[member.member])}{escape(member.member)}<div class="dim">{about}</div></td>'
        f"<td>{escape(member.epochs)}</td><td>{holds}{leaving}</td>{target}</tr>"
    )
