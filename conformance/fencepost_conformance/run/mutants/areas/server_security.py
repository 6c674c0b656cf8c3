"""Faults of logins and of decisions about rights."""

from __future__ import annotations

from ..replacement import Replacement
from .fault import Area, Fault

ACL, SASL, LOGIN = (
    "fencepost_server/security/acl.py",
    "fencepost_server/security/sasl.py",
    "fencepost_server/apis/login.py",
)

FAULTS = (
    Fault(
        "deny-all-denies-nothing", Area.SECURITY,
        "a rule that denies All does not deny a named operation",
        "allow User:a Read Topic *, deny User:a All Topic secret: Fetch of secret must answer "
        "TOPIC_AUTHORIZATION_FAILED",
        (
            Replacement(
                ACL, "Acl.allows",
                "not each.allow and {operation, Operation.ALL} & each.operations",
                "not each.allow and operation in each.operations",
            ),
        ),
    ),
    Fault(
        "denied-read-denies-describe", Area.SECURITY,
        "a rule that denies Read denies Describe too; only rules that allow imply Describe",
        "allow User:a Describe Topic t, deny User:a Read Topic t: Metadata must show t",
        (
            Replacement(
                ACL, "Acl.allows",
                "if any(not each.allow and {operation, Operation.ALL} & each.operations for each in about):",
                "also = _IMPLY_DESCRIBE if operation is Operation.DESCRIBE else ()\n"
                "if any(not each.allow and {operation, Operation.ALL, *also} & each.operations for each in about):",
            ),
        ),
    ),
    Fault(
        "delete-does-not-imply-describe", Area.SECURITY,
        "only Read and Write imply Describe, not Delete and Alter",
        "allow User:a Delete Topic t: Metadata of t must answer no error",
        (
            Replacement(
                ACL, "Acl.allows",
                "wanted.update(_IMPLY_DESCRIBE)", "wanted.update((Operation.READ, Operation.WRITE))",
            ),
        ),
    ),
    Fault(
        "prefix-itself-not-matched", Area.SECURITY,
        "a prefix does not match the resource whose name is the prefix",
        "allow User:a Read Group orders*: JoinGroup of group orders must not answer GROUP_AUTHORIZATION_FAILED",
        (
            Replacement(
                ACL, "Rule.about",
                'name.startswith(self.name[:-1]) if self.name.endswith("*")',
                'name.startswith(self.name[:-1]) and len(name) >= len(self.name) if self.name.endswith("*")',
            ),
        ),
    ),
    Fault(
        "host-matched-by-prefix", Area.SECURITY,
        "the host of a rule matches hosts that begin with it",
        "allow User:a All Topic * from 127.0.0.1, and a client from 127.0.0.10: Metadata of t must be denied",
        (Replacement(ACL, "Rule.concerns", 'self.host in ("*", host)', 'host.startswith(self.host.rstrip("*"))'),),
    ),
    Fault(
        "plain-acts-for-another-user", Area.SECURITY,
        "PLAIN accepts an authorization id of another user",
        "SaslAuthenticate PLAIN with authzid root, user a and a's password: it must answer SASL_AUTHENTICATION_FAILED",
        (Replacement(SASL, "Plain.step", 'if behalf not in ("", name):', "if behalf and known is None:"),),
    ),
    Fault(
        "plain-password-read-as-latin-1", Area.SECURITY,
        "PLAIN reads name and password as Latin-1 and not as UTF-8",
        "a user with the password grüße logs in by PLAIN: it must be let in",
        (Replacement(SASL, "Plain.step", "message.decode()", 'message.decode("latin-1")'),),
    ),
    Fault(
        "scram-name-unescaped-twice", Area.SECURITY,
        "SCRAM undoes the escapes of a user name in the wrong order",
        "SCRAM login of a user with the name a=2Cb, sent as a=3D2Cb: it must be let in",
        (
            Replacement(
                SASL, "Scram._begin",
                '.replace("=2C", ",").replace("=3D", "=")', '.replace("=3D", "=").replace("=2C", ",")',
            ),
        ),
    ),
    Fault(
        "scram-nonce-prefix-accepted", Area.SECURITY,
        "SCRAM accepts a final message that repeats a part of the nonce only",
        "SCRAM final message with r= the client's own nonce, proof computed over it: the login must fail",
        (
            Replacement(
                SASL, "Scram._finish",
                'if found["nonce"] != self._nonce:', 'if not self._nonce.startswith(found["nonce"]):',
            ),
        ),
    ),
    Fault(
        "handshake-restarts-an-exchange", Area.SECURITY,
        "a second SaslHandshake in the middle of an exchange begins another one",
        "SaslHandshake SCRAM-SHA-256, first SCRAM message, SaslHandshake PLAIN: it must answer ILLEGAL_SASL_STATE",
        (
            Replacement(
                LOGIN, "handshake",
                "if session.exchange is not None or (session.logged_in and not session.may_renew(_now)):",
                "if session.logged_in and not session.may_renew(_now):",
            ),
        ),
    ),
    Fault(
        "handshake-after-login", Area.SECURITY,
        "a connection that is logged in may log in as another user, though the server announces no re-authentication",
        "log in as a, then SaslHandshake again: it must answer ILLEGAL_SASL_STATE",
        (
            Replacement(
                LOGIN, "handshake",
                "if session.exchange is not None or (session.logged_in and not session.may_renew(_now)):",
                "if session.exchange is not None:",
            ),
        ),
    ),
    Fault(
        "refused-login-may-retry", Area.SECURITY,
        "after a refused login the connection stays usable for further guesses",
        "SaslAuthenticate with a wrong password, then SaslHandshake on the same connection: it must be closed",
        (Replacement(LOGIN, "authenticate", "session.refused = True", "session.logged_in = False"),),
    ),
    Fault(
        "fast-path-before-login", Area.SECURITY,
        "group requests that are answered at once need no login",
        "on a server with users, ApiVersions and then Heartbeat without a login: the connection must be closed",
        (
            Replacement(
                "fencepost_server/dispatch.py", "Dispatch.begin",
                "if node.users is not None and (session.logging_in or session.ends_at is not None):",
                "if node.users is not None and session.ends_at is not None:",
            ),
        ),
    ),
    Fault(
        "fast-path-without-acl", Area.SECURITY,
        "group requests that are answered at once ignore the rules",
        "deny User:a All Group g; OffsetCommit to g by a: it must answer GROUP_AUTHORIZATION_FAILED",
        (
            Replacement(
                "fencepost_server/dispatch.py", "Dispatch.begin",
                "session.bare or session.refused or not node.acl.open:", "session.bare or session.refused:",
            ),
        ),
    ),
    Fault(
        "fetch-of-all-offsets-shows-denied-topics", Area.SECURITY,
        "OffsetFetch of all topics shows those that the caller may not describe",
        "a group has offsets of t and secret, and the caller may describe t alone; OffsetFetch with null topics: "
        "secret must be absent",
        (
            Replacement(
                "fencepost_server/apis/groups.py", "_ask",
                "call.all_topics_denied(topic_right) | call.denied(", "call.denied(",
            ),
        ),
    ),
    Fault(
        "second-group-of-a-fetch-not-checked", Area.SECURITY,
        "OffsetFetch of several groups checks the right to the first one",
        "allow User:a Describe Group mine; OffsetFetch v8 of mine and theirs: theirs must answer "
        "GROUP_AUTHORIZATION_FAILED",
        (
            Replacement(
                "fencepost_server/apis/groups.py", "_groups",
                "[group.group_id for group in body.groups]", "[group.group_id for group in body.groups[:1]]",
            ),
        ),
    ),
    Fault(
        "second-transactional-id-not-checked", Area.SECURITY,
        "FindCoordinator of several transactional ids checks the right to the first one",
        "allow User:a Describe TransactionalId mine; FindCoordinator v4 of mine and theirs: theirs must answer "
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        (
            Replacement(
                "fencepost_server/apis/groups.py", "find_coordinator",
                "call.denied(Operation.DESCRIBE, Resource.TRANSACTIONAL_ID, keys)",
                "call.denied(Operation.DESCRIBE, Resource.TRANSACTIONAL_ID, keys[:1])",
            ),
        ),
    ),
    Fault(
        "create-right-on-topic-ignored", Area.SECURITY,
        "CreateTopics needs Create on the cluster, and ignores Create on the topic",
        "allow User:a Create Topic mine-*; CreateTopics mine-1: it must be made",
        (
            Replacement(
                "fencepost_server/apis/admin.py", "create_topics",
                " and not call.may(Operation.CREATE, Resource.TOPIC, name):", ":",
            ),
        ),
    ),
    Fault(
        "auto-creation-without-right", Area.SECURITY,
        "Metadata creates a topic for a caller that may describe but not create it",
        "serve with auto creation; allow User:a Describe Topic new; Metadata of new: it must not be made",
        (
            Replacement(
                "fencepost_server/apis/metadata.py", "_asked",
                "node.options.auto_create and call.may(Operation.CREATE, Resource.TOPIC, name):",
                "node.options.auto_create:",
            ),
        ),
    ),
    Fault(
        "offsets-of-a-denied-group-in-a-transaction", Area.SECURITY,
        "AddOffsetsToTxn checks the transactional id and not the group",
        "allow User:a Write TransactionalId x; AddOffsetsToTxn of group theirs: it must answer "
        "GROUP_AUTHORIZATION_FAILED",
        (
            Replacement(
                "fencepost_server/apis/transactions.py", "add_offsets_to_txn",
                "if not call.may(Operation.READ, Resource.GROUP, group):",
                "if not group and not call.may(Operation.READ, Resource.GROUP, group):",
            ),
        ),
    ),
    Fault(
        "ended-login-still-serves", Area.SECURITY,
        "requests are served after the login has ended",
        "serve with --max-reauth-ms 4000; log in, wait 5 s, Metadata: the connection must be closed (KIP-368)",
        (Replacement("fencepost_server/security/session.py", "Session.has_ended", "now > self.ends_at", "now < 0"),),
        tests=("tests/unit/server/test_logins_beside_kafka.py::test_renewals_are_answered_as_kafka_has_answered_them",),
    ),
    Fault(
        "renewal-changes-the-user", Area.SECURITY,
        "a login may be renewed as another user",
        "log in as alice, then SaslHandshake and the password of carol: it must answer SASL_AUTHENTICATION_FAILED",
        (
            Replacement(
                LOGIN, "_step", 'session.logged_in and session.principal != f"User:{name}"', "not name"
            ),
        ),
        tests=("tests/unit/server/test_logins_beside_kafka.py::test_renewals_are_answered_as_kafka_has_answered_them",),
    ),
    Fault(
        "renewal-by-another-mechanism", Area.SECURITY,
        "a login may be renewed by another mechanism",
        "log in by PLAIN, then SaslHandshake SCRAM-SHA-256 and a message: the connection must be closed",
        (Replacement(LOGIN, "handshake", "other = session.logged_in and", "other = not mechanism and"),),
        tests=("tests/unit/server/test_logins_beside_kafka.py::test_renewals_are_answered_as_kafka_has_answered_them",),
    ),
    Fault(
        "renewals-without-a-pause", Area.SECURITY,
        "a login may be renewed any number of times in a second",
        "log in, and renew the login twice at once: the second SaslHandshake must answer ILLEGAL_SASL_STATE",
        (Replacement("fencepost_server/security/session.py", "Session.may_renew", ">= _BETWEEN_RENEWALS_S", ">= 0"),),
        tests=("tests/unit/server/test_logins_beside_kafka.py::test_renewals_are_answered_as_kafka_has_answered_them",),
    ),
    Fault(
        "lifetime-of-a-login-not-announced", Area.SECURITY,
        "a login ends, and SaslAuthenticate does not say when",
        "serve with --max-reauth-ms 4000; log in: SaslAuthenticate must answer session_lifetime_ms 4000",
        (Replacement(LOGIN, "authenticate", '"session_lifetime": lifetime_ms', '"session_lifetime": 0'),),
        tests=("tests/unit/server/test_logins_beside_kafka.py::test_renewals_are_answered_as_kafka_has_answered_them",),
    ),
)  # fmt: skip
