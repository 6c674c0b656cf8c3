"""The steps of a trace in which some or all clients use the consumer protocol."""

from __future__ import annotations

from random import Random

from fencepost.protocol.events import GroupConfig, GroupConfigChanged, TaskDone, TopicsChanged
from fencepost.protocol.records import Record

from . import consumer_hostile, consumer_preload, hostile, mixed_hostile
from .classic_steps import ClassicSteps
from .clients import Client
from .consumer_clients import ConsumerClient, ConsumerPhase
from .mixed_clients import MixedClient
from .steps import Steps, Weighted
from .topics import Topics
from .world import World

_SESSION_TIMEOUTS = (None, 45_000, 50_000, 60_000, 30_000, 70_000)
_HEARTBEAT_INTERVALS = (None, None, 5_000, 3_000, 10_000, 20_000)
_ASSIGNMENT_INTERVALS = (None, None, 0, 1_000, 5_000, 20_000)


class ConsumerSteps(Steps):
    """The kinds of step and how often each is drawn. ``classic`` draws the steps of classic clients."""

    def __init__(
        self, world: World, rng: Random, clients: list[ConsumerClient], classic: ClassicSteps | None = None
    ) -> None:
        self._clients = clients
        self._classic = classic
        self._topics = Topics(rng)
        super().__init__(world, rng)

    def _weighted(self) -> list[Weighted]:
        mood = self._world.plan.mood
        regexes = any(client.regex for client in self._clients)
        return [
            (60 * (1 - mood.hostile), self._client),
            (60 * mood.hostile, self.forge),
            (60 * mood.duplicate, self.duplicate),
            (10, self._wait),
            (6, self._replicate),
            (12 if regexes else 3, self._task),
            (3, self._change_topics),
            (1, self._configure),
            (mood.admin, self._admin),
            (mood.fail_over, self._fail_over),
            *([(2, self._classic.request_of_replaced_member)] if self._classic is not None else []),
        ]

    def _begin(self) -> None:
        early = self._rng.random() < 0.9  # a broker has a metadata image first; a test host may not
        if early:
            self._publish_topics()
        super()._begin()
        if not early:
            self._publish_topics()

    def preloaded(self) -> list[Record]:
        records = consumer_preload.preloaded(self._rng, self._world.plan, self._clients, self._topics)
        loaded = {record.key.group for record in records}
        others = self._classic.preloaded() if self._classic is not None else []
        return records + [record for record in others if record.key.group not in loaded]

    def _client(self) -> None:
        world, rng = self._world, self._rng
        programs: list[Client | ConsumerClient] = [*self._clients, *(self._classic.clients if self._classic else ())]
        rng.shuffle(programs)
        for client in programs:
            if client.silent:
                client.silent = rng.random() < 0.9
                continue
            wanted = client.next_request(rng, world.plan.mood.restart)
            if wanted is not None:
                if rng.random() < 0.6:
                    world.now += rng.choice((1, 50, 200, 1_000, 3_000))
                denied: frozenset[str] = frozenset()
                if isinstance(client, ConsumerClient) and client.regex and rng.random() < 0.1:
                    denied = consumer_hostile.denied_topics(rng)
                world.request(*wanted, client, denied_topics=denied)
                return
        self._wait()

    def forge(self) -> None:
        world, rng = self._world, self._rng
        if self._classic is not None and rng.random() < 0.4:
            if rng.random() >= 0.4 or not self._forge_join(self._classic.clients):
                self._classic.forge()
            return
        client = rng.choice(self._clients)
        version, body = consumer_hostile.heartbeat(rng, world, client)
        denied = frozenset({getattr(body, "group_id", "")}) if rng.random() < 0.03 else frozenset()
        topics = consumer_hostile.denied_topics(rng) if rng.random() < 0.05 else frozenset()
        # sometimes the client takes the answer for its own and continues from there
        if rng.random() < 0.3 and not denied:
            world.request(version, body, client, denied_topics=topics)
        else:
            host = (client.plan.client_id, "/127.0.0.77")
            world.request(version, body, host=host, denied=denied, denied_topics=topics)

    def _forge_join(self, clients: list[Client]) -> bool:
        """Send a JoinGroup of a member of a consumer group; returns False if there is no member."""
        world, rng = self._world, self._rng
        client = rng.choice(clients)
        assert isinstance(client, MixedClient)
        made = mixed_hostile.join(rng, world, client, {each.topic_id: each.name for each in self._topics.image()})
        if made is None:
            return False
        if rng.random() < 0.3:
            world.request(*made, client)
        else:
            world.request(*made, host=(client.plan.client_id, client.plan.client_host))
        return True

    def duplicate(self) -> None:
        """Send a request again, as a retry or a duplicating network would."""
        if self._classic is not None and self._rng.random() < 0.4:
            self._classic.duplicate()
            return
        client = self._rng.choice(self._clients)
        if client.last is None:
            self._client()
            return
        version, body = client.last
        if self._rng.random() < 0.5 and client.phase is not ConsumerPhase.GONE:
            self._world.request(version, body, client)
        else:
            self._world.request(version, body, host=(client.plan.client_id, client.plan.client_host))

    def _wait(self) -> None:
        """Let time pass, sometimes until an assignment or a regex may be computed again (M-TGT-08, M-RX-03)."""
        world, rng = self._world, self._rng
        settings = world.plan.settings
        marks = []
        for name in sorted(world.consumer_groups):
            view = world.consumer_groups[name]
            if view.group_epoch > view.assignment_epoch and view.assignment_timestamp:
                marks.append(view.assignment_timestamp + settings.group_consumer_assignment_interval_ms)
            for regex in view.regexes:
                marks.append(regex.timestamp + settings.regex_min_refresh_interval_ms)
                marks.append(regex.timestamp + settings.group_consumer_regex_refresh_interval_ms)
        marks = [mark for mark in marks if mark >= world.now]
        draw = rng.random()
        if marks and draw < 0.4:
            world.now = max(world.now, rng.choice(marks) + rng.choice((-1, 0, 1)))
        elif draw < 0.7:
            world.now += rng.choice((1, 100, 500, 1_000, 5_000))
        else:
            super()._wait()

    def _some_end(self, least: int) -> int:
        """Draw a replication offset: the records of a step are one batch, and replication handles whole batches."""
        return self._rng.choice([end for end in self._world.ends if end >= least])

    def beside(self) -> None:
        """Change topics, configure groups, or end tasks of a coordinator that has lost the partition."""
        world, rng = self._world, self._rng
        if world.lost_tasks and rng.random() < world.plan.wide.late_tasks:
            key = world.lost_tasks.pop(rng.randrange(len(world.lost_tasks)))
            world.feed(TaskDone(world.now, key, failed=rng.random() < 0.1))
        else:
            rng.choice((self._change_topics, self._configure, self._befalls))()

    def _task(self) -> None:
        """Finish a background task, or let it fail (M-RX-04)."""
        world, rng = self._world, self._rng
        wait = world.plan.wide.late_tasks > 0 and rng.random() < 0.8
        if wait or not world.tasks:
            self._client()
            return
        key = rng.choice(world.tasks)
        world.tasks.remove(key)
        world.feed(TaskDone(world.now, key, failed=rng.random() < 0.1))

    def _change_topics(self) -> None:
        self._topics.change()
        self._publish_topics()

    def _publish_topics(self) -> None:
        image = self._topics.image()
        for client in self._classic.clients if self._classic is not None else ():
            if isinstance(client, MixedClient):
                client.sizes = {topic.name: topic.partitions for topic in image}
        self._world.feed(TopicsChanged(self._world.now, image, version=self._topics.version))

    def _configure(self) -> None:
        """Set a group's dynamic configuration, in range or not, or remove it (M-CFG-01)."""
        world, rng = self._world, self._rng
        config = GroupConfig(
            consumer_session_timeout_ms=rng.choice(_SESSION_TIMEOUTS),
            consumer_heartbeat_interval_ms=rng.choice(_HEARTBEAT_INTERVALS),
            consumer_assignment_interval_ms=rng.choice(_ASSIGNMENT_INTERVALS),
        )
        world.feed(GroupConfigChanged(world.now, rng.choice(world.plan.groups), config if rng.random() < 0.8 else None))

    def _admin(self) -> None:
        world, rng = self._world, self._rng
        draw = rng.random()
        if draw < 0.4:
            version, body = consumer_hostile.consumer_describe(rng, world)
        elif draw < 0.5:
            version, body = hostile.describe(rng, world)
        elif draw < 0.75:
            version, body = hostile.list_groups(rng)
        else:
            version, body = consumer_hostile.delete(rng, world)
        denied = frozenset({consumer_hostile.group_id(rng, world)}) if rng.random() < 0.08 else frozenset()
        topics = consumer_hostile.denied_topics(rng) if rng.random() < 0.1 else frozenset()
        world.request(version, body, denied=denied, denied_topics=topics)
