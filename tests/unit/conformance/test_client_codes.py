"""The sweep of error codes has every code that a coordinator answers, and a case for each."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import fields, is_dataclass

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.profiles import KAFKA_4_3
from fencepost_conformance.generate.generator import generate
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.judge.client_cases.case import CLIENT_CASES
from fencepost_conformance.judge.client_cases.cases.errors import COVERED
from fencepost_conformance.judge.client_cases.cases.final import ANSWERS, ELSEWHERE, SINCE
from fencepost_conformance.judge.client_cases.catalogue import chosen

#: a part of each join
ALWAYS = {("JoinGroup", ErrorCode.MEMBER_ID_REQUIRED)}
#: codes of single partitions, and one that old versions of OffsetCommit get in a consumer group
IN_ROWS = {
    ("OffsetFetch", ErrorCode.UNKNOWN_TOPIC_ID), ("OffsetFetch", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ("OffsetCommit", ErrorCode.UNSUPPORTED_VERSION),
}  # fmt: skip


def codes(value: object) -> set[ErrorCode]:
    if isinstance(value, ErrorCode):
        return {value} - {ErrorCode.NONE}
    if isinstance(value, tuple):
        return {code for each in value for code in codes(each)}
    if is_dataclass(value):
        return {code for field in fields(value) for code in codes(getattr(value, field.name))}
    return set()


def test_every_code_that_the_core_answers_is_in_the_sweep() -> None:
    """In random traces, whose clients also send what no right client sends."""
    known = {(request.api, code) for request in ANSWERS for code in request.codes}
    apis = {request.api for request in ANSWERS}
    seen: defaultdict[str, set[ErrorCode]] = defaultdict(set)
    for protocol in (GroupProtocol.CLASSIC, GroupProtocol.CONSUMER):
        for seed in range(12):
            for seen_now in generate(seed, KAFKA_4_3, 100, protocol, offsets=0.3).observations:
                for reply in seen_now.replies:
                    seen[type(reply.body).__name__.removesuffix("Response")] |= codes(reply.body)
    answered = {(api, code) for api in apis for code in seen[api]}
    assert len(answered) > 30
    assert answered - known - ALWAYS - IN_ROWS == set()


def test_every_code_of_the_sweep_has_a_case() -> None:
    assert chosen(["client.final"])
    texts = {case.text for case in CLIENT_CASES.values()}
    for request in ANSWERS:
        for code in request.codes:
            key = request.protocol, request.api, code
            if key in ELSEWHERE:
                assert ELSEWHERE[key] in CLIENT_CASES
                continue
            texts_of = [text for text in texts if f" {request.api} " in text and f"answered {code.name}." in text]
            assert any(f"{request.protocol} group" in text for text in texts_of), key
            if key not in COVERED:
                assert any("wait in silence" in text for text in texts_of), key
    assert {code for _, code in SINCE} <= {code for request in ANSWERS for code in request.codes}
