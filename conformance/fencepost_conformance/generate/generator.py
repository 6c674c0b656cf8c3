"""Make a trace from a seed, online: each next event is drawn from the coordinator's current state.

Most steps are normal behaviour of clients, time and log, so groups grow, become Stable and rebalance. The rest are
faults. The draws depend on the seed alone: no clock, no hash order, no unsorted iteration of sets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from fencepost.protocol.events import Event
from fencepost.protocol.profile import Profile
from fencepost.protocol.settings import Settings

from ..targets.core import CoreSession
from ..targets.ids import MemberIds
from ..targets.java_order import JavaOrder
from ..traces.observation import Observation
from . import offset_moves
from .classic_steps import ClassicSteps
from .clients import Client
from .consumer_clients import ConsumerClient
from .consumer_plan import draw_consumer_plan
from .consumer_steps import ConsumerSteps
from .edge_moves import EdgeOffsets, EdgeTimes
from .edge_words import worded
from .mixed_clients import mixed_client
from .plan import GroupProtocol, Plan, draw_plan
from .steps import Steps
from .wide import widened
from .world import CoreRaised, Session, World

DEFAULT_STEPS = 150


@dataclass(frozen=True, slots=True)
class Generated:
    """A trace and the core's observation at each event.

    ``failure``: what the core raised at the last event, which then has no observation.
    """

    seed: int
    settings: Settings
    profile: Profile
    events: tuple[Event, ...]
    observations: tuple[Observation, ...]
    failure: str | None = None


def core_session(settings: Settings, profile: Profile) -> Session:
    """Return the core, with choices as Kafka makes them."""
    return CoreSession(settings, profile, JavaOrder(MemberIds()))


def generate(
    seed: int,
    profile: Profile,
    steps: int = DEFAULT_STEPS,
    protocol: GroupProtocol = GroupProtocol.CLASSIC,
    *,
    session: Callable[[Settings, Profile], Session] = core_session,
    between: Callable[[World], None] | None = None,
    offsets: float | None = 0.0,
    fails_within: bool = True,
    edges: bool | None = None,
    adapted: Callable[[Plan], Plan] = lambda plan: plan,
) -> Generated:
    """Return the trace of ``seed`` with at least ``steps`` events (a failed append may add more).

    ``session`` makes the coordinator that the trace is played against. ``between`` is called before each drawn step,
    and may feed its own events. ``offsets``: the probability that an offset request follows a step; None: drawn
    (``offset_moves``), and 0 for half of the traces. With 0, old offsets are not expired either. ``fails_within``:
    appends within their own step may fail too, which takes two steps to report (``compare.atomic``). ``edges``: the
    trace goes to exact boundaries (``edge_moves``); None: a third of the traces with drawn offsets do. ``adapted``
    changes the drawn plan."""
    mixed = protocol is GroupProtocol.MIXED
    if protocol is GroupProtocol.CLASSIC:
        rng = Random(seed)
        plan = draw_plan(rng)
    else:
        rng = Random(f"{protocol} {seed}")
        plan = draw_consumer_plan(rng, mixed=mixed)
    plan = widened(plan, Random(f"wide {protocol} {seed}"))
    about_offsets = Random(f"offsets {protocol} {seed}")
    dice = Random(f"edges {protocol} {seed}")
    if edges is None:
        edges = offsets is None and dice.random() < 1 / 3
    images = protocol is GroupProtocol.CLASSIC
    kind = EdgeOffsets if edges else offset_moves.OffsetMoves
    moves, settings = offset_moves.drawn(about_offsets, profile, plan.settings, images=images, rate=offsets, kind=kind)
    plan = adapted(replace(plan, settings=settings))
    if edges and dice.random() < 0.5:
        plan = worded(plan, dice)
    classic = [mixed_client(client, rng) if mixed else Client(client) for client in plan.clients]
    consumers = [ConsumerClient(client) for client in plan.consumers]
    world = World(plan, rng, [*classic, *consumers], session(plan.settings, profile))
    world.expires = moves is not None
    world.fails_within = fails_within
    failure = None
    times = EdgeTimes(dice) if edges else None
    called = [each for each in (times, moves, between) if each is not None]

    def all_between(world: World) -> None:
        for each in called:
            each(world)

    try:
        _steps(world, rng, classic, consumers, protocol).run(steps, all_between if called else None)
    except CoreRaised as raised:
        failure = str(raised)
    return Generated(seed, plan.settings, profile, tuple(world.events), tuple(world.observations), failure)


def _steps(
    world: World, rng: Random, classic: list[Client], consumers: list[ConsumerClient], protocol: GroupProtocol
) -> Steps:
    if protocol is GroupProtocol.CLASSIC:
        return ClassicSteps(world, rng, classic)
    return ConsumerSteps(world, rng, consumers, ClassicSteps(world, rng, classic) if classic else None)
