"""Faults of workers, and of their connections to brokers in other processes."""

from __future__ import annotations

from ..replacement import Replacement
from .fault import Area, Fault

OFFSETS, WORKER, DRIVER = "work/offsets.py", "work/worker.py", "work/driver.py"
CLUSTER, CONNECTION, SASL = "remote/cluster.py", "remote/connection.py", "remote/sasl.py"

FAULTS = (
    Fault(
        "error-of-an-old-epoch-fences", Area.WORK,
        "a commit that is refused for an old epoch loses the share although the member has a new one",
        "a commit is under way while the member's epoch grows; it is answered FENCED_MEMBER_EPOCH: the worker must "
        "commit again with the new epoch",
        (
            Replacement(
                OFFSETS, "commit",
                "if error in _FENCED and who() == (member_id, epoch):", "if error in _FENCED:",
            ),
        ),
        source="KAFKA-9823",
    ),
    Fault(
        "commit-error-of-second-topic-ignored", Area.WORK,
        "a commit counts as accepted if the first topic of the answer has no error",
        "Share.commit of t-0 and u-0 where the coordinator refuses u-0: it must not return",
        (
            Replacement(
                OFFSETS, "_committed",
                "for topic in answer.topics for row in topic.partitions)",
                "for topic in answer.topics[:1] for row in topic.partitions)",
            ),
        ),
    ),
    Fault(
        "commit-of-zero-not-read", Area.WORK,
        "a committed offset of 0 counts as no commit",
        "Share.commit {t-0: 0}, Share.committed(): it must return {t-0: 0}",
        (Replacement(OFFSETS, "committed", "if row.committed_offset >= 0}", "if row.committed_offset > 0}"),),
    ),
    Fault(
        "unstable-offset-read-as-none", Area.WORK,
        "errors of single partitions in an OffsetFetch are ignored",
        "an open transaction has offsets of t-0; Share.committed(): it must wait and not return {}",
        (
            Replacement(
                OFFSETS, "committed",
                "{group.error_code, *(row.error_code for _, row in rows)} - {ErrorCode.NONE}",
                "{group.error_code} - {ErrorCode.NONE}",
            ),
        ),
    ),
    Fault(
        "commit-for-a-partition-given-away", Area.WORK,
        "a worker commits for a share whose partitions it has given up since",
        "a worker gives t-0 up and keeps the old share; share.commit({t-0: 1}): it must raise ShareLost",
        (
            Replacement(
                WORKER, "Worker.commit",
                "if share.lost or not offsets.keys() <= self._owned:", "if share.lost:",
            ),
        ),
    ),
    Fault(
        "revoked-called-before-work-ends", Area.WORK,
        "the callback for revoked partitions is called while the program still works on them",
        "a second worker joins while the first one's loop body runs: `revoked` must be called after the body ended",
        (
            Replacement(
                WORKER, "Worker._listens",
                "if named:\n    self._over(lost=False)\n    await self._given_up()\n"
                "await _call(self._callbacks.revoked, named)",
                "await _call(self._callbacks.revoked, named)\nif named:\n    self._over(lost=False)\n"
                "    await self._given_up()",
            ),
        ),
    ),
    Fault(
        "leave-waits-for-an-ended-program", Area.WORK,
        "a worker whose iterating task has ended never leaves",
        "a task iterates over the worker and raises in its loop body; another calls leave(): it must return",
        (
            Replacement(
                WORKER, "Worker.leave",
                "is self._program or self._program is None or self._program.done():",
                "is self._program or self._program is None:",
            ),
        ),
    ),
    Fault(
        "leave-not-awaited", Area.WORK,
        "a worker that ends does not wait until its leave is sent",
        "a worker over TCP leaves while a Heartbeat is under way, which the broker answers a second later: LeaveGroup "
        "must follow, so that others get its partitions before the session timeout",
        (
            Replacement(
                DRIVER, "Driver.close",
                "(self.member.waiting is not None or self._asked)", "self._listening",
            ),
        ),
        source="KAFKA-16639",
    ),
    Fault(
        "failed-metadata-not-asked-again", Area.WORK,
        "a Metadata request that failed once is never repeated",
        "the broker closes the connection on the first Metadata: the worker must get its partitions all the same",
        (
            Replacement(
                DRIVER, "Driver._look_at",
                "await asyncio.sleep(self.member.settings.retry_backoff_ms / 1000)", "return",
            ),
        ),
    ),
    Fault(
        "classic-worker-is-never-static", Area.WORK,
        "a classic worker joins without its group.instance.id",
        "worker(protocol='classic', instance_id='a'), DescribeGroups: the member must have group_instance_id a",
        (
            Replacement(
                "work/settings.py", "WorkerSettings.member",
                "MemberSettings(\n    self.group_id,\n    group_instance_id=self.instance_id,",
                "MemberSettings(\n    self.group_id,",
            ),
        ),
    ),
    Fault(
        "metadata-looked-at-once", Area.WORK,
        "a worker asks for the topics once and never again",
        "a topic that matches the worker's pattern is made later: the worker must get its partitions",
        (
            Replacement(
                DRIVER, "Driver._look_again",
                "await self._look_at(frozenset(), frozenset())",
                "await self._look_at(frozenset(), frozenset())\nreturn",
            ),
        ),
    ),
    Fault(
        "doubled-answer-taken-for-the-next", Area.REMOTE,
        "an answer with another correlation id is taken",
        "the broker sends an answer twice, then the next one: the second answer must not be taken for the next request",
        (
            Replacement(
                CONNECTION, "Connection._exchange",
                "if read_correlation_id(answer) != self._asked:", "if read_correlation_id(answer) > self._asked:",
            ),
        ),
    ),
    Fault(
        "login-renewed-when-it-has-ended", Area.REMOTE,
        "a login is renewed when its session lifetime is over and not before",
        "a broker with connections.max.reauth.ms 1,000: no request may come after a second without a login",
        (
            Replacement(
                CONNECTION, "Connection._log_in",
                "began + lasts_s * _RENEWS if lasts_s else inf", "began + lasts_s if lasts_s else inf",
            ),
        ),
    ),
    Fault(
        "bootstrap-brokers-alone-asked", Area.REMOTE,
        "only brokers of the bootstrap list are asked who coordinates",
        "Groups('a:9092') of a cluster with a and b; a dies: the worker must continue with b",
        (
            Replacement(
                CLUSTER, "Cluster._any",
                "dict.fromkeys([*self._bootstrap, *self._brokers])", "dict.fromkeys(self._bootstrap)",
            ),
        ),
    ),
    Fault(
        "first-bootstrap-broker-alone", Area.REMOTE,
        "the second broker of the bootstrap list is not asked if the first refuses the connection",
        "Groups('127.0.0.1:1,127.0.0.1:9092'): it must begin",
        (Replacement(CLUSTER, "Cluster._any", "wrong = failed", "raise Refused(str(failed)) from failed"),),
    ),
    Fault(
        "broken-connection-kept", Area.REMOTE,
        "a connection that broke is used again",
        "the broker closes the connection of commits once: the next commit must open another",
        (
            Replacement(
                CLUSTER, "Cluster._connection",
                "if known is None or known.broken:", "if known is None:",
            ),
        ),
    ),
    Fault(
        "first-worker-breaks-connections-of-the-tenth", Area.REMOTE,
        "a worker that loses its coordinator drops the connections of workers whose number begins alike",
        "eleven workers of one Groups; the first loses its coordinator: the tenth must keep its connections",
        (Replacement(CLUSTER, "Line.__init__", 'f"{number} "', 'f"{number}"'),),
    ),
    Fault(
        "nonce-without-a-part-of-the-broker", Area.REMOTE,
        "the client accepts a SCRAM nonce to which the broker has added nothing",
        "a broker answers with the client's own nonce: the login must fail",
        (
            Replacement(
                SASL, "Sasl._scram",
                "if not both.startswith(nonce) or both == nonce:", "if not both.startswith(nonce):",
            ),
        ),
    ),
    Fault(
        "comma-in-a-name-escaped-twice", Area.REMOTE,
        "the client escapes the escape of a comma in a SCRAM user name",
        "log in as 'a,b' by SCRAM: the broker must let it in",
        (
            Replacement(
                SASL, "Sasl._scram",
                '.replace("=", "=3D").replace(",", "=2C")', '.replace(",", "=2C").replace("=", "=3D")',
            ),
        ),
    ),
    Fault(
        "newer-broker-asked-for-an-old-version", Area.REMOTE,
        "the client asks for a version below the broker's lowest",
        "a broker that has JoinGroup from a later version on than the client: the worker must name the versions",
        (
            Replacement(
                CONNECTION, "Connection.newest",
                "if min(most, highest) < max(least, lowest):", "if min(most, highest) < lowest:",
            ),
        ),
    ),
    Fault(
        "cancelled-request-leaves-its-answer", Area.REMOTE,
        "a connection stays in use after a request on it was given up, and the next request reads its answer",
        "a Heartbeat is not answered in time; the next request on the connection must not fail because of the late one",
        (
            Replacement(
                CONNECTION, "Connection._exchange",
                "except BaseException:\n    self.break_()  # even if the wait is cancelled: a late response would "
                "answer the next request\n    raise",
                "except OSError:\n    self.break_()\n    raise",
            ),
        ),
    ),
    Fault(
        "only-the-newest-share-is-lost", Area.WORK,
        "a worker that loses its partitions marks only its newest share as lost; its program may work on another",
        "a worker gets partitions while its program is slow, and is fenced: the share of the program must be lost",
        (Replacement(WORKER, "Worker._over", "for earlier in self._shares:", "for earlier in ():"),),
        tests=("tests/unit/work/test_one_owner.py",),
    ),
    Fault(
        "close-keeps-polling", Area.WORK,
        "a worker that leaves polls until its listener is idle, and each poll calls the listener again",
        "the callback for new partitions takes as long as the rebalance timeout: leave() must end",
        (Replacement(DRIVER, "Driver._poll", "self._running and not self._closing", "self._running"),),
        tests=("tests/unit/work/test_one_owner.py",),
    ),
)  # fmt: skip
