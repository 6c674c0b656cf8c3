"""Rarer features of a trace: times, ids and settings that its plan alone would seldom have.

One in three traces keeps its plan. The others have some of these features, drawn by their own random generator, so that
a feature that is off leaves the trace as it would be without it, draw by draw.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

from fencepost.protocol.settings import Settings

from .consumer_plan import REGEXES, TOPICS
from .plan import REBALANCE_TIMEOUTS, SESSION_TIMEOUTS, UNBOUNDED, ClientPlan, ConsumerPlan, Plan, Wide

#: text of every kind: composed and decomposed, zero-width, blank in Java or not, outside the BMP, at the ends of each
#: range of UTF-8 and UTF-16, both directions, equal when case-folded, long
_TEXTS = (
    "é", "e\u0301", "ß", "SS", "ﬁ", "İ", "i\u0307", "\u200b", "\ufeff", "\u00a0", "\u2003", "\u202eabc", " ", "\t",
    "\0", "a b", "a\nb", "-", "--", "\x7f", "\x80", "\u07ff", "\u0800", "\ud7ff", "\ue000", "\uffff", "\U00010000",
    "\U0010ffff", "\U0001f980", "\U0001f980\u200d\U0001f980", "\u0f0b", "\u05d0\u05d1", "漢字", "Ω", "\u2126", "null",
    "0", "g" * 255, "é" * 300,
)  # fmt: skip
#: legal but rare names, and others that no topic can have
_ODD_TOPICS = ("Orders", "orders_eu", "o", "9", "-", "a" * 249, "ördérs", "\U0001f980", "orders ", "orders\0")
#: syntax that only RE2 has, or that others read differently; and texts that look like syntax
_ODD_REGEXES = (
    "(?i)ORDERS.*", "^orders$", "orders\\b.*", "\\Qaudit.log\\E", "[[:alpha:]]+", "\\w+-\\w+", "[^o].*",
    "o{2}|p{1,3}.*", "(?s).+", "\\pL+", "\\p{Greek}*", "(?:orders|payments)(?:-eu)?", "(?P<first>orders)", "a|",
    "orders.*?", "\\x6frders", "(?U)o.*", "\\Aorders\\z", "[\\d\\w]+", "é", "\U0001f980*", ".", "orders\n", " orders",
)  # fmt: skip
#: their timers have equal names in Kafka, since the end of one name is the beginning of another (C-TMR-11)
_TOUCHING_GROUPS = ("g", "g-m", "g-m-m", "m")
_TOUCHING_MEMBERS = ("m", "m-m", "m-m-m", "g", "g-m", "x")
_TOUCHING_INSTANCES = ("i", "g-i", "m")
_REASONS = ("", " ", "rebalance", "\U0001f980", "r" * 256, "é" * 2_000, "r" * 32_767, "\0")
_MOST = UNBOUNDED


def widened(plan: Plan, dice: Random) -> Plan:
    """Return the plan with the features that the dice give it."""
    if dice.random() < 1 / 3:
        return plan

    def often(value: float) -> float:
        return value if dice.random() < 0.3 else 0.0

    wide = Wide(
        odd_epochs=often(dice.choice((0.2, 0.5))),
        abrupt=often(dice.choice((0.02, 0.06, 0.15))),
        late_tasks=often(0.6),
        cleaned=often(dice.choice((0.5, 1.0))),
        burst=often(dice.choice((0.4, 0.8))),
        long_waits=often(0.1),
    )
    mood = plan.mood
    if wide.burst:
        mood = replace(mood, append_fails=max(mood.append_fails, 0.08))
    if wide.abrupt or wide.cleaned or wide.odd_epochs or wide.late_tasks:
        mood = replace(mood, fail_over=max(mood.fail_over, 1.0))
    plan = replace(plan, wide=wide, mood=mood)
    for change in (_settings, _strange, _touching, _talkative):
        if dice.random() < 0.3:
            plan = change(plan, dice)
    return plan


def _settings(plan: Plan, dice: Random) -> Plan:
    """Use Kafka's default settings, or some at the limits of their ranges; and members with timeouts at their
    limits."""
    settings = replace(Settings(), consumer_protocol_enabled=plan.settings.consumer_protocol_enabled)
    if dice.random() < 0.6:
        settings = _extreme(settings, dice)
    least, most = settings.group_min_session_timeout_ms, settings.group_max_session_timeout_ms
    sessions = (least, most, *(each for each in SESSION_TIMEOUTS if least <= each <= most))
    rebalances = (0, 1, _MOST, *REBALANCE_TIMEOUTS)

    return replace(
        plan,
        settings=settings,
        clients=tuple(
            replace(client, session_timeout_ms=dice.choice(sessions), rebalance_timeout_ms=dice.choice(rebalances))
            for client in plan.clients
        ),
        consumers=tuple(
            replace(client, rebalance_timeout_ms=dice.choice((0, 1, client.rebalance_timeout_ms, _MOST)))
            for client in plan.consumers
        ),
    )


def _extreme(usual: Settings, dice: Random) -> Settings:
    """Draw each setting as usual, or as the least or the greatest that Kafka accepts. A heartbeat interval stays below
    the session timeout, and both are between their bounds."""

    def one(least: int, most: int, default: int) -> int:
        return dice.choice((least, most, default, default))

    session = dice.choice((2, _MOST, usual.group_consumer_session_timeout_ms))
    heartbeat = min(one(1, session - 1, usual.group_consumer_heartbeat_interval_ms), session - 1)
    interval = one(0, _MOST, usual.group_consumer_assignment_interval_ms)
    return replace(
        usual,
        group_min_session_timeout_ms=one(0, 45_000, usual.group_min_session_timeout_ms),
        group_max_session_timeout_ms=one(45_000, _MOST, usual.group_max_session_timeout_ms),
        group_initial_rebalance_delay_ms=one(0, _MOST, usual.group_initial_rebalance_delay_ms),
        group_max_size=one(1, _MOST, _MOST),
        offsets_commit_timeout_ms=one(1, _MOST, usual.offsets_commit_timeout_ms),
        group_consumer_session_timeout_ms=session,
        group_consumer_min_session_timeout_ms=dice.choice((1, session)),
        group_consumer_max_session_timeout_ms=dice.choice((session, _MOST)),
        group_consumer_heartbeat_interval_ms=heartbeat,
        group_consumer_min_heartbeat_interval_ms=dice.choice((1, heartbeat)),
        group_consumer_max_heartbeat_interval_ms=dice.choice((heartbeat, _MOST)),
        group_consumer_max_size=one(1, _MOST, _MOST),
        group_consumer_assignment_interval_ms=interval,
        group_consumer_max_assignment_interval_ms=dice.choice((interval, _MOST)),
        group_consumer_regex_refresh_interval_ms=one(10_000, _MOST, usual.group_consumer_regex_refresh_interval_ms),
    )


def _strange(plan: Plan, dice: Random) -> Plan:
    """Use unusual ids, hosts, racks, topics and regular expressions."""
    groups = dict(
        zip(plan.groups, dice.sample([text for text in _TEXTS if text.strip()], len(plan.groups)), strict=True)
    )
    plan = _with_groups(plan, groups)

    def consumer(client: ConsumerPlan) -> ConsumerPlan:
        return replace(
            client,
            client_id=dice.choice(_TEXTS),
            client_host=dice.choice(
                (client.client_host, "/0:0:0:0:0:0:0:1", "/[fe80::1%eth0]", "host.example/10.0.0.1")
            ),
            instance_id=_sometimes(client.instance_id, _TEXTS, dice),
            rack_id=_sometimes(client.rack_id, _TEXTS, dice),
            names=None if client.names is None else _more(client.names, dice),
            regex=client.regex and dice.choice((client.regex, dice.choice(_ODD_REGEXES))),
            ids=tuple(dice.sample(_TEXTS, 4)),
            regexes=tuple(dice.sample((*REGEXES, *_ODD_REGEXES), 8)),
        )

    def classic(client: ClientPlan) -> ClientPlan:
        return replace(
            client,
            client_id=dice.choice(_TEXTS),
            client_host=dice.choice((client.client_host, "/0:0:0:0:0:0:0:1", "somewhere")),
            instance_id=_sometimes(client.instance_id, _TEXTS, dice),
            topics=_more(client.topics, dice),
        )

    return replace(plan, clients=tuple(map(classic, plan.clients)), consumers=tuple(map(consumer, plan.consumers)))


def _sometimes(now: str | None, texts: Sequence[str], dice: Random) -> str | None:
    return now if now is None or dice.random() < 0.3 else dice.choice(texts)


def _more(names: tuple[str, ...], dice: Random) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*names, *dice.sample((*_ODD_TOPICS, *TOPICS), dice.choice((0, 1, 2))))))


def _touching(plan: Plan, dice: Random) -> Plan:
    """Use several groups whose members, instances and timers have the same names."""
    names = dice.sample(_TOUCHING_GROUPS, dice.choice((2, 2, 3)))
    return replace(
        plan,
        groups=tuple(names),
        clients=tuple(
            replace(
                client, group_id=dice.choice(names), client_id=dice.choice((client.client_id, "m", "")),
                instance_id=client.instance_id and dice.choice(_TOUCHING_INSTANCES),
            )
            for client in plan.clients
        ),
        consumers=tuple(
            replace(
                client, group_id=dice.choice(names), ids=_TOUCHING_MEMBERS[: dice.choice((2, 3, 6))],
                instance_id=client.instance_id and dice.choice(_TOUCHING_INSTANCES),
            )
            for client in plan.consumers
        ),
    )  # fmt: skip


def _with_groups(plan: Plan, names: Mapping[str, str]) -> Plan:
    return replace(
        plan,
        groups=tuple(names[group] for group in plan.groups),
        clients=tuple(replace(client, group_id=names[client.group_id]) for client in plan.clients),
        consumers=tuple(replace(client, group_id=names[client.group_id]) for client in plan.consumers),
    )


def _talkative(plan: Plan, dice: Random) -> Plan:
    """Use reasons of every length in requests."""
    return replace(plan, clients=tuple(replace(client, reason=dice.choice(_REASONS)) for client in plan.clients))
