"""Play a script without and with one switch, and find out which rules decide the first difference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from fencepost import coordinator
from fencepost.coordinator.kernel.rules import Rules, rules_of
from fencepost.coordinator.kernel.topics import TopicImage
from fencepost.functions import KafkaFunctions
from fencepost.protocol.choices import Choices
from fencepost.protocol.errors import IllegalEvent
from fencepost.protocol.events import Event
from fencepost.protocol.profile import SWITCHES, Part, Profile, Switch
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.settings import Settings
from fencepost.quirks import registered, registered_values
from fencepost.rulebook.book import citations, cited_lines
from fencepost_conformance.generate.generator import generate
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.judge.rulebook.texts import rule_book
from fencepost_conformance.targets.core import CoreSession
from fencepost_conformance.targets.ids import MemberIds
from fencepost_conformance.targets.java_order import JavaOrder
from fencepost_conformance.traces.observation import Observation
from fencepost_model.trace import Follower
from tools.evidence.running import Ran, noted, rules_of_functions

from .scene import FirstOf, Scene

CORE: Final = Path(coordinator.__file__).parent
STEPS: Final = 100
#: the switches of the coordinator
OURS: Final = {each.name: each for each in SWITCHES if each.part not in (Part.MEMBER, Part.HOST)}
_MATCHER: Final = KafkaFunctions().matcher


@dataclass(frozen=True, slots=True)
class Script:
    """Events for a coordinator without and with a switch. ``base``: the profile without it, usually the intended one.
    ``choices`` returns the choices anew."""

    settings: Settings
    events: Sequence[Event]
    choices: Callable[[], Choices]
    base: Profile = INTENDED

    def with_switch(self, name: str) -> Profile:
        """Return the base with one more switch."""
        return replace(self.base, name=name, **{name: True})


def drawn(protocol: GroupProtocol, seed: int) -> Script:
    """Return the script of a seed."""
    made = generate(seed, INTENDED, STEPS, protocol, offsets=None)
    return Script(made.settings, made.events, lambda: JavaOrder(MemberIds()))


def written(scene: Scene) -> Script:
    """Return the script of a scene that was played without the switch."""
    return Script(scene.state.settings, scene.fed, FirstOf, scene.state.profile)


@dataclass(slots=True)
class Seams:
    """The functions that vary, and the fields of the rules, that the coordinator reaches while it has these rules."""

    profile: Profile
    reached: set[object] = field(default_factory=set)

    @property
    def instead(self) -> Seams:
        return self

    @property
    def quirks(self) -> Seams:
        return self

    def __getitem__(self, function: Any) -> Any:
        self.reached.add(function)
        quirks = rules_of(self.profile).quirks
        return function if quirks is None else quirks.instead[function]

    def __getattr__(self, name: str) -> Any:
        self.reached.add(name)
        return getattr(rules_of(self.profile), name)


class Played:
    """A coordinator that handles a script."""

    def __init__(self, settings: Settings, profile: Profile, choices: Choices) -> None:
        self.session = CoreSession(settings, profile, choices)
        self.seams = Seams(profile)

    def watch(self) -> None:
        """Note from now on which seams are reached."""
        self.follow(self.seams)  # type: ignore[arg-type]

    def follow(self, rules: Rules) -> None:
        """Continue with these rules."""
        self.session._state = self.session._state._replace(rules=rules)

    def feed(self, event: Event) -> Observation:
        """Handle the event; an exception that a host would see is part of the observation."""
        try:
            return self.session.feed(event)
        except IllegalEvent:
            raise
        except Exception as raised:
            return Observation(error=f"{type(raised).__name__}: {raised}")

    @property
    def state(self) -> tuple[object, ...]:
        """The state without its profile and the version of an image without topics, and the order of its groups."""
        state = self.session._state
        topics = state.topics if state.topics.by_id else TopicImage()
        return state._replace(profile=INTENDED, rules=rules_of(INTENDED), topics=topics), tuple(state.groups)


@cache
def seams_of(switch: str) -> frozenset[object]:
    """Return the functions and the fields that a switch changes."""
    functions = {each.intended for each in registered() if switch in each.switches}
    return frozenset(functions | {each.field for each in registered_values() if each.switch == switch})


def reached(script: Script) -> set[object]:
    """Return the seams that the coordinator reaches in this script. It reads the version of the first image before."""
    played = Played(script.settings, script.base, script.choices())
    played.watch()
    for event in script.events:
        played.feed(event)
    return played.seams.reached | {"first_image_version"}


def first_difference(script: Script, profile: Profile) -> int | None:
    """Return the first event after which answers or states differ from those under this profile, None if none do."""
    plain = Played(script.settings, script.base, script.choices())
    played = Played(script.settings, profile, script.choices())
    for place, event in enumerate(script.events):
        if played.feed(event) != plain.feed(event) or played.state != plain.state:
            return place
    return None


@cache
def _rules_of_code() -> dict[tuple[str, int], set[str]]:
    return rules_of_functions(CORE, lambda text: cited_lines(text, rule_book()))


def rules_of_step(script: Script, place: int, profile: Profile) -> set[str]:
    """Return the rules that the core's functions cite which run for an event. Citations of quirks and of the fields of
    the rules do not count, since they say nothing about the event."""
    played, ran = Played(script.settings, profile, script.choices()), Ran()
    for event in script.events[:place]:
        played.feed(event)
    with noted(ran, CORE):
        played.feed(script.events[place])
    rules = _rules_of_code()
    core = [key for key in ran.functions if "quirks" not in Path(key[0]).relative_to(CORE).parts]
    return set[str]().union(*(rules.get(key, ()) for key in core))


def rules_of_model(script: Script, place: int, profile: Profile) -> set[str]:
    """Return the rules by which the model explains how the coordinator handles an event under this profile. Raises
    ``AssertionError`` if the model does not allow it."""
    played, follower = Played(script.settings, profile, script.choices()), Follower(script.settings, profile, _MATCHER)
    rules: tuple[str, ...] = ()
    for event in script.events[: place + 1]:
        verdict = follower.feed(event, played.feed(event))
        assert verdict.ok, f"the model with {profile.name}: {verdict}"
        rules = verdict.rules
    return set(rules)


def declared(switch: Switch) -> set[str]:
    """Return the rules of a switch, and those that its rules about releases (V-…) name."""
    return {*switch.rules, *_named(switch)}


def _named(switch: Switch) -> Iterator[str]:
    for rule in switch.rules:
        if rule.startswith("V-"):
            yield from citations(rule_book()[rule].text, rule_book())
