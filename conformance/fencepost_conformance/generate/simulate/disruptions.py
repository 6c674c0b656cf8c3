"""Carries out the disruptions of a plan."""

from __future__ import annotations

from dataclasses import replace

from fencepost.member.events import CloseOption, EnforceRebalance

from .plan import Disruption, Fault
from .world import World


def disrupt(world: World, what: Disruption) -> None:
    host, amount, rng = world.hosts[what.host], what.amount, world.rng
    world.note(f"-- {what.fault.name}: m{what.host} {what.fault.value} ({amount})")
    match what.fault:
        case Fault.CRASH | Fault.DEATH:
            host.crash()
            if what.fault is Fault.CRASH:
                _restart(world, what)
        case Fault.STALL:
            host.stall(amount)
        case Fault.CLOSE:
            host.close(rng.choice(list(CloseOption)))
            _restart(world, what)
        case Fault.SWITCH:
            host.close(CloseOption.DEFAULT)
            world.later(amount, lambda: _switch(world, what.host))
        case Fault.UNSUBSCRIBE:
            host.unsubscribe()
            world.later(amount, lambda: host.subscribe(host.plan.topics))
        case Fault.RESUBSCRIBE:
            names = sorted(world.broker.topics)
            host.subscribe(frozenset(rng.sample(names, rng.randint(1, len(names)))))
        case Fault.ENFORCE:
            host.call(EnforceRebalance(world.now, "asked"))
        case Fault.LISTENER:
            host.listener_fails = True
            host.listener_delay_ms = amount
            world.later(amount, lambda: setattr(host, "listener_delay_ms", host.plan.listener_ms))
        case Fault.TWIN:
            if host.plan.settings.group_instance_id is not None:
                alike = sum(each.plan.name.startswith(host.plan.name) for each in world.hosts)
                twin = world.host(replace(host.plan, name=host.plan.name + alike * "'"))
                world.hosts.append(twin)
                twin.start()
        case Fault.GROW:
            topics = world.broker.topics
            name = rng.choice(sorted(topics))
            topics[name] = replace(topics[name], partitions=topics[name].partitions + 1)
            world.publish_topics()
            for each in world.hosts:
                world.later(rng.randint(0, amount), lambda to=each: world.network.fetch_metadata(to))  # type: ignore[misc]
        case Fault.FAIL_OVER:
            world.broker.fail_over(amount)
        case Fault.SLOW:
            host.processing_ms = amount


def _restart(world: World, what: Disruption) -> None:
    def restart() -> None:
        host = world.hosts[what.host]
        if not host.running and host.given_up is None:
            host.start()

    world.later(what.amount, restart)


def _switch(world: World, number: int) -> None:
    """Restart the program with the other protocol (X-ROLL-02); one that cannot close is stopped."""
    host = world.hosts[number]
    if host.given_up is not None or host.plan.other is None:
        return
    if host.running:
        host.crash()
    host.given_up = "came back with the other protocol"
    successor = world.host(host.plan.switched())
    successor.process = host.process
    world.hosts[number] = successor
    successor.start()
