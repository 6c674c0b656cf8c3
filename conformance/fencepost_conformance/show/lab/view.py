"""The view of a session: everything that the page draws, as JSON data. Pure: the same session gives the same view."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from fencepost.protocol.profiles import PROFILES
from fencepost_model.machines import CLASSIC_MEMBER, CONSUMER_CLIENT, MachineSpec

from ...generate.lab import Lab
from ...generate.lab.clients import AnyClient
from ...generate.lab.journal import COORDINATOR, Fate, Kind, Message, Row
from ...generate.lab.lab import protocol_of
from ...generate.lab.sides import sides
from ...generate.lab.start import GROUP, TOPIC
from ...judge.rulebook import texts
from ..report import holdings
from ..report.names import Names
from ..report.steps import StepDescriber, StepWords
from ..report.words import api_of, key_words
from . import messages
from .fields import fields_of
from .releases import differences

#: rows of the journal that a view contains
ROWS: Final = 400


def view_of(lab: Lab, rows: int = ROWS) -> dict[str, Any]:
    """Return the view. ``rows``: how many of the last rows of the journal it contains."""
    return _View(lab).data(rows)


def sides_view(lab: Lab) -> dict[str, Any]:
    """Return the session under each protocol: owners over time, and the counters."""
    return {
        "now": lab.now,
        "sides": [
            {
                "protocol": protocol,
                "now": lab.now,
                "clients": [{"name": client.plan.name} for client in side.lab.clients],
                "strips": strips(side.lab),
                "counters": counters(side.lab),
                "skipped": list(side.skipped),
            }
            for protocol, side in sides(lab)
        ],
    }


class _View:
    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        steps = lab.journal.steps
        describer = StepDescriber(
            [step.event for step in steps], [step.seen for step in steps], [step.rules for step in steps]
        )
        self.names: Names = describer.names
        self.words = describer.steps()

    def data(self, count: int) -> dict[str, Any]:
        lab, journal = self.lab, self.lab.journal
        first = max(0, len(journal.rows) - count)
        return {
            "now": lab.now,
            "actions": len(lab.actions),
            "profile": lab.start.profile,
            "other": lab.start.other,
            "lanes": [*(client.plan.name for client in lab.clients), COORDINATOR],
            "clients": [self._client(client) for client in lab.clients],
            "group": self._group(),
            "rows": [self._row(number, journal.rows[number]) for number in range(first, len(journal.rows))],
            "hidden": first,
            "flying": [self._message(message) for message in journal.flying],
            "strips": strips(lab),
            "offsets": self._offsets(),
            "timers": self._timers(),
            "counters": counters(lab),
            "active": lab.broker.active,
            "broker": lab.broker.leader_epoch,
            "armed": lab.broker.append_fails,
        }

    # --- clients and group ---

    def _client(self, client: AnyClient) -> dict[str, Any]:
        member_id, epoch = client.identity
        lab = self.lab
        return {
            "name": client.plan.name,
            "protocol": protocol_of(client),
            "static": client.plan.settings.group_instance_id is not None,
            "running": client.running,
            "ended": client.given_up or "",
            "state": client.member.state.value if client.running else "stopped",
            "member": self.names.member(member_id),
            "epoch": epoch,
            "owns": sorted(each.partition for each in client.member.assignment) if client.running else [],
            "frozen": max(0, client.busy_until - lab.now),
            "slow": client.processing_ms,
        }

    def _group(self) -> dict[str, Any]:
        core = self.lab.core
        consumer, classic = core.consumer_groups.get(GROUP), core.groups.get(GROUP)
        if consumer is not None:
            at, machine = holdings.consumer(consumer, self.names), "consumer-group"
        elif classic is not None:
            at, machine = holdings.classic(classic, self.names), "classic-group"
        else:
            return {"name": GROUP, "kind": "", "state": "", "machine": "", "epochs": [], "members": [], "notes": []}
        return {
            "name": GROUP,
            "kind": at.kind,
            "state": at.state,
            "machine": machine,
            "epochs": [[name, value] for name, value in at.epochs],
            "members": [
                {
                    "member": row.member,
                    "protocol": row.protocol,
                    "epochs": row.epochs,
                    "state": row.state,
                    "holds": [number for _, number in row.holds],
                    "gives_up": [number for _, number in row.giving_up],
                    "target": None if row.target is None else [number for _, number in row.target],
                }
                for row in at.members
            ],
            "notes": list(at.notes),
        }

    # --- the journal ---

    def _row(self, number: int, row: Row) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "number": number,
            "at": row.at_ms,
            "kind": row.kind,
            "lane": row.lane,
            "text": self.names.short(row.text),
            "quiet": row.quiet,
            "bad": row.kind is Kind.ALERT,
        }
        if row.message is not None:
            message = self.lab.journal.message(row.message)
            fields |= {"message": self._message(message), "from": message.sender, "to": message.receiver}
            fields["text"] = fields["message"]["brief"]
            fields["bad"] = message.fate is Fate.LOST or fields["message"]["error"]
        rules = row.rules
        if row.step is not None:
            step = self.words[row.step]
            fields["step"] = _step(step)
            fields["text"] = fields["text"] or step.brief
            rules = rules or step.rules
        if row.kind is Kind.CLIENT and " → " in row.text:
            rules = _member_rules(row.text)
        fields["rules"] = self._rules(rules)
        fields["differences"] = differences(rules, self.lab.start.release, PROFILES[self.lab.start.other])
        return fields

    def _rules(self, rules: Iterable[str]) -> list[list[str]]:
        return [[rule, texts.brief(rule)] for rule in rules]

    def _message(self, message: Message) -> dict[str, Any]:
        body, names = message.body, self.names
        is_request = message.receiver == COORDINATOR
        brief, words = messages.brief(body, names), messages.words(body, names)
        return {
            "number": message.number,
            "api": api_of(body),
            "request": is_request,
            "from": message.sender,
            "to": message.receiver,
            "sent": message.sent_ms,
            "due": message.due_ms,
            "fate": message.fate,
            "copy": message.copy,
            "brief": names.short(f"{brief}{' (repeated)' if message.copy else ''}"),
            "words": names.short(words),
            "error": messages.has_error(body),
            "fields": fields_of(body, names),
        }

    # --- offsets and timers ---

    def _offsets(self) -> list[dict[str, Any]]:
        lab = self.lab
        committed = {
            row.partition: row.offset
            for row in lab.core.offsets.committed
            if row.group_id == GROUP and row.topic == TOPIC
        }
        positions = {
            partition.partition: [client.plan.name, position]
            for client in lab.clients
            if client.running
            for partition, position in client.positions.items()
        }
        return [
            {"partition": number, "committed": committed.get(number), "position": positions.get(number)}
            for number in range(lab.broker.topics[TOPIC].partitions)
        ]

    def _timers(self) -> list[dict[str, Any]]:
        lab = self.lab
        found = [
            {"lane": COORDINATOR, "name": self.names.short(key_words(key)), "due": due}
            for key, due in lab.core.armed.items()
            if key.kind.value != "expiry"
        ]
        for client in lab.clients:
            if client.running:
                found += [
                    {"lane": client.plan.name, "name": timer.value, "due": due}
                    for timer, due in client.member.deadlines.items()
                    if due >= lab.now
                ]
        return sorted(found, key=lambda each: (each["due"], each["lane"], each["name"]))


def strips(lab: Lab) -> list[dict[str, Any]]:
    """Return the owners of each partition over time: beginning, end, names."""
    return [
        {
            "partition": partition,
            "stretches": [
                [each.from_ms, lab.now if each.until_ms is None else each.until_ms, list(each.owners)] for each in strip
            ],
        }
        for partition, strip in sorted(lab.ownership.strips.items())
    ]


def counters(lab: Lab) -> dict[str, int]:
    """Return the counters of the session; times in ms, summed over partitions."""
    return {
        "unowned_ms": lab.ownership.unowned_ms(lab.now),
        "shared_ms": lab.ownership.shared_ms(lab.now),
        "moved": lab.ownership.moved,
        "returned": lab.ownership.returned,
        "repeated": lab.repeated,
        "requests": sum(message.receiver == COORDINATOR for message in lab.journal.messages),
    }


def _step(step: StepWords) -> dict[str, Any]:
    append = step.append
    return {
        "what": step.what,
        "answers": [answer.text for answer in step.answers],
        "records": [] if append is None else list(append.records),
        "fate": "" if append is None else append.fate,
        "timers": list(step.timers),
        "groups": [
            f"{group.group}: {group.state} {', '.join(f'{name} {value}' for name, value in group.epochs)}"
            for group in step.groups
        ],
        "error": step.error,
    }


def _member_rules(text: str) -> tuple[str, ...]:
    """Return the rules of a client's change of state, from the tables of the client's machines."""
    before, _, after = text.partition(" → ")
    for spec in (CONSUMER_CLIENT, CLASSIC_MEMBER):
        if rules := _transition(spec, before, after):
            return rules
    return ()


def _transition(spec: MachineSpec, before: str, after: str) -> tuple[str, ...]:
    names = {name.replace("_", "").lower(): name for name in spec.states}
    ends = names.get(before.lower()), names.get(after.lower())
    found = (each.rules for source, _, dest, each in spec.expand() if (source, dest) == ends)
    return tuple(dict.fromkeys(rule for rules in found for rule in rules))
