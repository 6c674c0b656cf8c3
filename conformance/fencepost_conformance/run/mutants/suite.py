"""The checks that run against a mutant, until one of them finds it.

There are fourteen checks, most of them over seeds. The *product* takes every transition of a bounded configuration on
the core and on the model. The *model* follows random traces of the coordinator, event by event. A *scene* is such a run
made by hand. *Loading* the log of a trace must restore what was written. *Simulations* of whole groups check the
properties of section 12. The *member's model* gets the same inputs as the member. The *assignors* must have their
properties for random groups. *Offsets* are compared with a book that is kept beside them, and the model follows traces
with offsets. A consumer that is *reading* is compared with a ledger. A *cluster* of brokers moves its coordinators.
Traces at *edges* go to exact boundaries; *logs*, *records* and *stores* are compared with plain lists. On request,
*Kafka's client* runs the schedules of members and readers. The faulty side decides which checks run; groups of each
protocol have their own traces, scenes and logs. The program without a fault must pass all checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, starmap
from random import Random

from fencepost.member import MemberSettings
from fencepost.member.assignors.range import RangeAssignor
from fencepost.protocol.events import Event
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.settings import Settings

from ...common.errors import CannotRun
from ...common.processes import worker_processes
from ...generate.generator import Generated, generate
from ...generate.plan import GroupProtocol
from ...generate.simulate import Broken, draw_plan, simulate
from ...generate.simulate.beside import Disagreement, Input
from ...generate.simulate.cluster import draw_cluster_plan, simulate_cluster
from ...generate.simulate.cooperative import GradualAssignor
from ...generate.simulate.pair import Pair
from ...generate.simulate.product import Bounds, explore
from ...generate.simulate.reading import walk as read
from ...judge.compare.model import follow
from ...targets.core import Core
from ...targets.jvm.serde.kept import wrongs
from . import consumer_member_checks, kafka_checks, killers
from .assignor_rules import check_assignors
from .consumer_replay_rules import check_consumer_load, check_read_while_compacted, standing
from .consumer_scenes import READ_WHILE_COMPACTED
from .consumer_scenes import SCENES as CONSUMER_SCENES
from .kill import Kill, Verdict
from .log_rules import check_log
from .mixed_scenes import SCENES as MIXED_SCENES
from .mixed_scenes import SETTINGS as MIXED_SETTINGS
from .mutant import Mutant, Side, planted
from .offset_rules import check_offsets
from .record_rules import check_records
from .replay_rules import check_load, written
from .scenes import SCENES
from .store_rules import check_stores

TRACES, TRACE_STEPS = 120, 120
LOADS = 120
BOUNDS = Bounds(ids=2, prompt=True, depth=60, transitions=4_000)
SIMULATIONS = 20
WALKS, WALK_STEPS = 250, 40
GROUPS = 150
OFFSETS = 120
READINGS = 160
CLUSTERS = 16
OFFSET_TRACES = 180
EDGE_TRACES, LOGS, RECORD_LOTS, STORES = 60, 150, 60, 12
METADATA = (("t", 2), ("u", 1))
#: mutants that one process tries before it is replaced, since their traces leave memory behind
TASKS_EACH = 8


def run(mutant: Mutant, *, quick: bool = False, begin_with: str = "", kafka: str | None = None) -> Verdict:
    """Plant the fault and run every check of its side; ``quick``: until one finds it. ``begin_with``: the name of the
    check that runs first (``NAMES``). ``kafka``: the release whose own client is the last check. Raises ``CannotRun``
    if there is no such client."""
    kills: list[Kill] = []
    broken = ""
    try:
        with planted(mutant):
            checks = sorted(CHECKS[mutant.side], key=lambda check: NAMES.get(check) != begin_with)
            for check in (*checks, *_by_kafka(kafka, mutant.side)):
                kills += islice(check(), 1)
                if quick and kills:
                    break
    except CannotRun:
        raise
    except Exception as raised:
        broken = f"{type(raised).__name__}: {raised}"
    return Verdict(mutant.name, tuple(kills), broken)


def _by_kafka(release: str | None, *sides: Side) -> Iterator[Check]:
    if release is not None:
        yield from (partial(_kafkas, release, side) for side in sides if side in kafka_checks.JUDGED)


def _kafkas(release: str, side: Side) -> Iterator[Kill]:
    return starmap(Kill, kafka_checks.differences(release, side))


def run_all(
    mutants: Sequence[Mutant], *, quick: bool = False, workers: int = 1, kafka: str | None = None
) -> Iterator[Verdict]:
    """Call ``run`` for each, in order, in so many processes, which are renewed from time to time."""
    one = partial(_run_named, quick=quick, kafka=kafka)
    names = [mutant.name for mutant in mutants]
    if workers < 2 or len(names) < 2:
        yield from map(one, names)
        return
    batch = TASKS_EACH * workers
    for first in range(0, len(names), batch):
        with worker_processes(min(workers, len(names) - first)) as pool:
            yield from pool.map(one, names[first : first + batch])


def _run_named(name: str, *, quick: bool, kafka: str | None) -> Verdict:
    from .catalogue import MUTANTS  # noqa: PLC0415 — imports the faults, which import the checks

    return run(MUTANTS[name], quick=quick, begin_with=killers.first_of(name) if quick else "", kafka=kafka)


def control(kafka: str | None = None) -> list[Kill]:
    """Run the suite on the unchanged program: nothing may be found."""
    return [kill for check in (*ALL_CHECKS, *_by_kafka(kafka, *Side)) for kill in check()]


def traces(protocol: GroupProtocol = GroupProtocol.CLASSIC) -> Iterator[Kill]:
    for seed in range(TRACES):
        yield from _followed("model", seed, generate(seed, INTENDED, TRACE_STEPS, protocol))


def _followed(check: str, seed: int, made: Generated) -> Iterator[Kill]:
    """Yield how the trace of this seed ended too early, or what the model does not allow in it."""
    if made.failure is not None:
        yield Kill(check, "an internal error", len(made.observations), seed, made.failure)
        return
    followed = follow(made.settings, made.profile, made.events, made.observations)
    if followed.refused is not None:
        yield Kill(check, _first(followed.rules), followed.steps + 1, seed, str(followed.refused))


def offset_traces() -> Iterator[Kill]:
    """Check traces with offsets, of each protocol in turn, with all stored offsets visible."""
    protocols = (*GroupProtocol,)
    for seed in range(OFFSET_TRACES):
        try:
            made = generate(seed, INTENDED, TRACE_STEPS, protocols[seed % len(protocols)], offsets=0.5)
        except Exception as raised:  # the faulty program crashed
            yield Kill("model", "an internal error", 0, seed, f"{type(raised).__name__}: {raised}")
            continue
        yield from _followed("model", seed, made)


def scenes(runs: Mapping[str, Sequence[Event]] = SCENES, settings: Settings = Settings()) -> Iterator[Kill]:  # noqa: B008 — a value
    for number, (name, events) in enumerate(runs.items()):
        observations, raised = Core().run_until_raised(settings, INTENDED, events)
        followed = follow(settings, INTENDED, events, observations)
        if followed.refused is not None:
            text = f"{name}: {followed.refused}"
            yield Kill("scene", _first(followed.rules), followed.steps + 1, number, text)
        elif raised is not None:
            yield Kill("scene", "an internal error", len(observations), number, f"{name}: {raised}")


def product() -> Iterator[Kill]:
    try:
        explored = explore(BOUNDS)
    except Exception as raised:  # the faulty program crashed
        yield Kill("product", "an internal error", 0, 0, f"{type(raised).__name__}: {raised}")
        return
    if explored.problem is not None:
        rule = explored.problem.split(":", 1)[0]
        yield Kill("product", rule, len(explored.trail), 0, f"{', '.join(explored.trail)}: {explored.problem}")


def loads() -> Iterator[Kill]:
    for seed in range(LOADS):
        generated = generate(seed, INTENDED, TRACE_STEPS)
        log = written(generated.events, generated.observations)
        load = partial(check_load, generated.settings, generated.profile, log)
        yield from _broken("loading", seed, load, len(generated.observations) + 1, 0)


def read_while_compacted() -> Iterator[Kill]:
    try:
        check_read_while_compacted()
    except Broken as found:
        yield Kill("loading", found.rule, len(READ_WHILE_COMPACTED), 0, found.text)


def consumer_loads(protocol: GroupProtocol = GroupProtocol.CONSUMER) -> Iterator[Kill]:
    for seed in range(LOADS):
        generated = generate(seed, INTENDED, TRACE_STEPS, protocol)
        log = written(generated.events, generated.observations)
        live = standing(generated.observations)
        if not live:  # the partition was lost at the end
            continue
        load = partial(check_consumer_load, generated.settings, generated.profile, log, live)
        yield from _broken("loading", seed, load, len(generated.observations) + 1, 0)


def simulations() -> Iterator[Kill]:
    for seed in range(SIMULATIONS):
        plan = draw_plan(seed)
        try:
            report = simulate(plan)
        except Broken:
            raise
        except Exception as raised:  # the faulty program crashed
            yield Kill("simulation", "an internal error", 0, seed, f"{type(raised).__name__}: {raised}")
            continue
        if report.broken is not None:
            steps = report.events + report.member_steps
            yield Kill("simulation", report.broken.rule, steps, seed, report.broken.text)


def walks() -> Iterator[Kill]:
    for seed in range(WALKS):
        found = walk(seed)
        if found is not None:
            yield found


def walk(seed: int) -> Kill | None:
    """Give a classic member and its model the random inputs of this seed, until they differ."""
    rng = Random(f"walk {seed}")
    settings = MemberSettings(
        "g",
        assignors=rng.choice([(RangeAssignor(),), (GradualAssignor(),)]),
        group_instance_id=rng.choice([None, "i"]),
        auto_commit=rng.random() < 0.3,
    )
    pair, steps = Pair(settings, METADATA), 0
    try:
        while steps < WALK_STEPS and (inputs := pair.inputs()):
            steps += 1
            pair = pair.after(choose(rng, inputs))
    except Disagreement as found:
        return Kill("member's model", _first(found.rules), steps, seed, str(found))
    except Exception as raised:  # the faulty program crashed
        return Kill("member's model", "an internal error", steps, seed, f"{type(raised).__name__}: {raised}")
    return None


def consumer_walks() -> Iterator[Kill]:
    return starmap(Kill, consumer_member_checks.walks())


def consumer_simulations() -> Iterator[Kill]:
    return starmap(Kill, consumer_member_checks.simulations())


def choose(rng: Random, inputs: list[Input]) -> Input:
    """Choose mostly inputs of a healthy group, so that walks get into generations; rarely an end."""
    healthy = [each for each in inputs if each.what in HEALTHY or (each.what == "answer" and not _error(each))]
    if healthy and rng.random() < 0.6:
        return rng.choice(healthy)
    others = [each for each in inputs if each.what != "close" or rng.random() < 0.1]
    return rng.choice(others or inputs)


HEALTHY = ("poll", "coordinator", "subscribe", "heartbeat due")


def _error(answer: Input) -> int:
    return int(getattr(answer.value, "error_code", 0))


def groups() -> Iterator[Kill]:
    return _seeds("assignors", check_assignors, GROUPS)


def offsets() -> Iterator[Kill]:
    return _seeds("offsets", check_offsets, OFFSETS)


def readings() -> Iterator[Kill]:
    """Check one reading consumer in a small cluster, each step against a ledger."""
    return _seeds("reading", read, READINGS)


def clusters() -> Iterator[Kill]:
    """Check coordinators that move between brokers, with members, commits and transactions."""
    for seed in range(CLUSTERS):
        try:
            report = simulate_cluster(draw_cluster_plan(seed))
        except Broken:
            raise
        except Exception as raised:  # the faulty program crashed
            yield Kill("cluster", "an internal error", 0, seed, f"{type(raised).__name__}: {raised}")
            continue
        if report.broken is not None:
            yield Kill("cluster", report.broken.rule, report.events, seed, report.broken.text)


def kept_bytes() -> Iterator[Kill]:
    """Check the codec against bytes that Kafka's serde wrote and read."""
    for wrong in wrongs():
        yield Kill("Kafka's bytes", wrong.rule, wrong.at, 0, wrong.text)


def edge_traces() -> Iterator[Kill]:
    """Check traces of each protocol in turn that go to exact boundaries, with offsets; the model follows."""
    protocols = (*GroupProtocol,)
    for seed in range(EDGE_TRACES):
        made = generate(seed, INTENDED, TRACE_STEPS, protocols[seed % len(protocols)], offsets=0.6, edges=True)
        yield from _followed("edges", seed, made)


def _seeds(check: str, play: Callable[[int], object], count: int) -> Iterator[Kill]:
    """Yield what breaks in a random run of each of so many seeds."""
    for seed in range(count):
        yield from _broken(check, seed, partial(play, seed), seed + 1, seed + 1)


def _broken(check: str, seed: int, play: Callable[[], object], steps: int, at_crash: int) -> Iterator[Kill]:
    """Yield what breaks in a run: a rule after so many ``steps``, or the faulty program itself."""
    try:
        play()
    except Broken as found:
        yield Kill(check, found.rule, steps, seed, found.text)
    except Exception as raised:
        yield Kill(check, "an internal error", at_crash, seed, f"{type(raised).__name__}: {raised}")


def logs() -> Iterator[Kill]:
    """Check a partition's log, a copy of it, compactions, and readers."""
    return _seeds("logs", check_log, LOGS)


def round_trips() -> Iterator[Kill]:
    """Check records of offsets with extreme fields, written and read."""
    return _seeds("records", check_records, RECORD_LOTS)


def stores() -> Iterator[Kill]:
    """Check a store in a file against one in memory."""
    return _seeds("stores", check_stores, STORES)


def _first(rules: Sequence[str]) -> str:
    """Return the rules that decided, the first two by name."""
    names = list(dict.fromkeys(rules))
    return ", ".join(names[:2]) + (" …" if len(names) > 2 else "") or "no rule applies"


Check = Callable[[], Iterator[Kill]]
consumer_traces, consumer_scenes = partial(traces, GroupProtocol.CONSUMER), partial(scenes, CONSUMER_SCENES)
mixed_traces, mixed_scenes = partial(traces, GroupProtocol.MIXED), partial(scenes, MIXED_SCENES, MIXED_SETTINGS)
mixed_loads = partial(consumer_loads, GroupProtocol.MIXED)
CHECKS: dict[Side, tuple[Check, ...]] = {
    Side.COORDINATOR: (product, traces, scenes, simulations, loads),
    Side.CONSUMER_GROUP: (consumer_traces, consumer_scenes, read_while_compacted, consumer_loads),
    Side.MIXED_GROUP: (mixed_traces, mixed_scenes, mixed_loads),
    Side.MEMBER: (walks, simulations),
    Side.CONSUMER_MEMBER: (consumer_walks, consumer_simulations),
    Side.READER: (readings,),
    Side.ASSIGNOR: (groups,),
    Side.CODEC: (kept_bytes,),
    Side.CLUSTER: (clusters,),
    Side.OFFSET_EDGES: (edge_traces,),
    Side.LOG: (logs,),
    Side.RECORDS: (round_trips,),
    Side.STORE: (stores,),
    Side.OFFSETS: (offsets, offset_traces),
}
#: the name in a ``Kill`` of each check that is one of several
NAMES: dict[Check, str] = {
    product: "product",
    simulations: "simulation",
    consumer_simulations: "consumer simulation",
    offsets: "offsets",
    **dict.fromkeys((walks, consumer_walks), "member's model"),
    **dict.fromkeys((traces, consumer_traces, mixed_traces, offset_traces), "model"),
    **dict.fromkeys((scenes, consumer_scenes, mixed_scenes), "scene"),
    **dict.fromkeys((loads, read_while_compacted, consumer_loads, mixed_loads), "loading"),
}
ALL_CHECKS: tuple[Check, ...] = (
    product,
    simulations,
    traces,
    scenes,
    loads,
    walks,
    groups,
    kept_bytes,
    readings,
    clusters,
    *CHECKS[Side.OFFSETS],
    *CHECKS[Side.OFFSET_EDGES],
    *CHECKS[Side.LOG],
    *CHECKS[Side.RECORDS],
    *CHECKS[Side.STORE],
    *CHECKS[Side.CONSUMER_GROUP],
    *CHECKS[Side.MIXED_GROUP],
    *CHECKS[Side.CONSUMER_MEMBER],
)
