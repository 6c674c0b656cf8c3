"""The trace format: a written trace is read back, and errors in a file are named."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from fencepost.protocol import events as ev
from fencepost.protocol import messages as m
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import KAFKA_4_3
from fencepost.protocol.records import GroupMetadataKey, GroupMetadataMember, GroupMetadataValue, Record
from fencepost.protocol.settings import Settings
from fencepost.protocol.view import GroupState, GroupView, MemberView
from fencepost_conformance.traces import convert, itf
from fencepost_conformance.traces import lines as ln
from fencepost_conformance.traces.files import BrokenTrace, EventTrace, WireTrace, read_traces, write_traces
from fencepost_conformance.traces.observation import Observation

ROOT = Path(__file__).resolve().parents[3]
RECORD = Record(
    GroupMetadataKey("g"),
    GroupMetadataValue(
        "consumer",
        generation=2,
        protocol="range",
        leader="m",
        current_state_timestamp=77,
        members=(
            GroupMetadataMember(
                "m",
                group_instance_id="i",
                client_id="c",
                client_host="/h",
                rebalance_timeout=60000,
                session_timeout=10000,
                subscription=b"\x00\xff",
                assignment=b"\xfb",
            ),
        ),
    ),
)
VIEW = GroupView(
    "g",
    state=GroupState.STABLE,
    previous_state=GroupState.COMPLETING_REBALANCE,
    generation_id=2,
    protocol_type="consumer",
    protocol_name="range",
    leader="m",
    members=(
        MemberView(
            "m",
            group_instance_id="i",
            client_id="c",
            client_host="/h",
            rebalance_timeout_ms=60000,
            session_timeout_ms=10000,
            protocols=(m.Protocol("range", b"\x00"),),
            assignment=b"\xfb",
            is_new=False,
            awaiting_join=True,
            awaiting_sync=False,
        ),
    ),
    static_members=(("i", "m"),),
    pending_join=frozenset({"z", "a"}),
    pending_sync=frozenset({"m"}),
    new_member_added=True,
)
REQUESTS = (
    m.JoinGroupRequest(
        "g",
        session_timeout_ms=1,
        rebalance_timeout_ms=-1,
        member_id="",
        protocol_type="consumer",
        protocols=(m.Protocol("range", bytes(range(256))),),
        reason="why",
    ),
    m.SyncGroupRequest(
        "g", generation_id=1, member_id="m", group_instance_id="i", assignments=(m.SyncGroupAssignment("m", b"\xff"),)
    ),
    m.HeartbeatRequest("g", generation_id=2**31 - 1, member_id="m"),
    m.LeaveGroupRequest("g", (m.LeaveGroupMember("m"), m.LeaveGroupMember("", group_instance_id="i", reason="bye"))),
    m.DescribeGroupsRequest(("g", "")),
    m.ListGroupsRequest(states_filter=("Stable",), types_filter=("classic",)),
    m.DeleteGroupsRequest(("g", "g")),
)
RESPONSES = (
    m.JoinGroupResponse(
        ErrorCode.NONE,
        generation_id=3,
        protocol_type="consumer",
        protocol_name=None,
        leader="m",
        skip_assignment=True,
        member_id="m",
        members=(m.JoinGroupMember("m", group_instance_id="i", metadata=b"\x01"),),
    ),
    m.SyncGroupResponse(ErrorCode.NONE, protocol_type="consumer", protocol_name="range", assignment=b"\x00"),
    m.HeartbeatResponse(ErrorCode.REBALANCE_IN_PROGRESS),
    m.LeaveGroupResponse(ErrorCode.NONE, (m.LeaveGroupMemberResponse("m", error_code=ErrorCode.UNKNOWN_MEMBER_ID),)),
    m.DescribeGroupsResponse(
        (
            m.DescribedGroup(
                ErrorCode.NONE,
                group_id="g",
                group_state="Stable",
                protocol_type="consumer",
                protocol_data="range",
                members=(
                    m.DescribedMember(
                        "m",
                        group_instance_id=None,
                        client_id="c",
                        client_host="/h",
                        member_metadata=b"a",
                        member_assignment=b"b",
                    ),
                ),
                error_message="no",
            ),
        )
    ),
    m.ListGroupsResponse(
        ErrorCode.NONE, (m.ListedGroup("g", protocol_type="consumer", group_state="Stable", group_type="classic"),)
    ),
    m.DeleteGroupsResponse((m.DeletedGroup("g", ErrorCode.NON_EMPTY_GROUP),)),
)
EVENTS: tuple[ev.Event, ...] = (
    *(
        ev.Request(5, id=n, version=0, client_id="c", client_host="/h", body=body, denied=frozenset({"y", "x"}))
        for n, body in enumerate(REQUESTS)
    ),
    ev.TimerFired(6, ev.TimerKey(ev.TimerKind.OPERATION, operation=-3)),
    ev.Appended(6, offset=2),
    ev.AppendFailed(6, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND),
    ev.TopicsChanged(7, (ev.Topic("t", b"\x01" * 16, 2, (frozenset({"r2", "r1"}), frozenset())),)),
    ev.LoadStarted(7, leader_epoch=4),
    ev.Load(8, leader_epoch=4, records=(RECORD, Record(GroupMetadataKey("h"), None))),
    ev.LoadFailed(8, leader_epoch=5),
    ev.Unload(9, leader_epoch=None),
)
OBSERVATION = Observation(
    (RECORD,),
    tuple(ev.Reply(n, body) for n, body in enumerate(RESPONSES)),
    {ev.TimerKey(ev.TimerKind.JOIN, "g"): 3000, ev.TimerKey(ev.TimerKind.SESSION, "g", "m"): None},
    {"g": VIEW, "h": None},
    "IllegalStateException",
)
PROFILE = Profile(name="mine", fault_parked_fail_early=True)
TRACE = EventTrace(
    Settings(group_max_size=2), PROFILE, EVENTS,
    (OBSERVATION, None, *(Observation() for _ in EVENTS[2:])), 2**70, "all of it", (("target", "kafka:4.3.1"),),
)  # fmt: skip


def wire_trace() -> WireTrace:
    lines: list[ln.WireLine] = [ln.ConnectedLine(at_ms=0, connection=1, client="127.0.0.1:5", server="127.0.0.1:9092")]
    for request, response in zip(sorted(REQUESTS, key=_key), sorted(RESPONSES, key=_key), strict=True):
        frame = {"at_ms": 1, "connection": 1, "correlation_id": 7, "api_key": _key(request), "api_version": 0}
        lines.append(ln.SentLine(**frame, body=convert.wire_body(request)))
        lines.append(ln.ReceivedLine(**frame, body=convert.wire_body(response)))
    frame = {"at_ms": 2, "connection": 1, "correlation_id": 9, "api_version": 3}
    lines.append(ln.SentLine(**frame, api_key=18, body={"x": [None, 1.5]}))
    lines.append(ln.ReceivedLine(**frame, api_key=11, body={"undecoded": "AA"}))
    lines.append(ln.DisconnectedLine(at_ms=4, connection=1, by="client"))
    return WireTrace(Settings(), KAFKA_4_3, tuple(lines), name="wire")


def _key(message: object) -> int:
    return ln.GROUP_APIS[ln.API_OF_TYPE[type(message)]][0]


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
def test_a_written_trace_is_read_back(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t{suffix}"
    traces = [TRACE, wire_trace(), TRACE]
    write_traces(path, traces)
    assert list(read_traces(path)) == traces
    first = path.read_bytes()
    write_traces(path, traces)
    assert path.read_bytes() == first


def test_itf_is_read_back() -> None:
    data = json.loads(json.dumps(itf.to_itf(TRACE)))
    assert itf.from_itf(data) == TRACE
    assert data["states"][0]["groups"]["#map"][0][0] == "g"
    assert "null" not in json.dumps(data)


def test_wire_bodies_are_typed() -> None:
    sent = [line for line in wire_trace().lines if isinstance(line, ln.SentLine)]
    assert [convert.wire_request(line) for line in sent] == [*sorted(REQUESTS, key=_key), None]


def test_the_documentation_s_examples_are_read(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "traces.md").read_text()
    blocks = re.findall(r"```json\n(.*?)```", text, re.S)
    header, wire, events = (block.strip().splitlines() for block in blocks)
    path = tmp_path / "doc.jsonl"
    wire_header = [header[0].replace('"events"', '"wire"')]
    path.write_text("\n".join([*header, *events, *wire_header, *wire]))
    assert [type(trace) for trace in read_traces(path)] == [EventTrace, WireTrace]


HEADER = '{"type":"trace","version":1,"kind":"events"}'
UNLOAD = '{"type":"unload","at_ms":5,"leader_epoch":null}'
BROKEN = {
    "not JSON": (HEADER, "{", "Invalid JSON"),
    "unknown field": (HEADER, '{"type":"unload","at_ms":5,"leader_epoch":1,"x":1}', "unload.x"),
    "missing field": (HEADER, '{"type":"unload","at_ms":5}', "unload.leader_epoch"),
    "wrong type": (HEADER, '{"type":"unload","at_ms":"5","leader_epoch":1}', "unload.at_ms"),
    "no type": (HEADER, "{}", "a JSON object with a 'type'"),
    "no object": (HEADER, "3", "object"),
    "unknown line": (HEADER, '{"type":"exploded"}', "exploded"),
    "time": (f"{HEADER}\n{UNLOAD}", UNLOAD.replace("5", "4"), "time goes back"),
    "kind": (HEADER, '{"type":"connected","at_ms":1,"connection":1}', "not allowed"),
    "lonely observation": (HEADER, '{"type":"observed"}', "must follow"),
    "future version": ('{"type":"trace","version":2,"kind":"events"}', "", "version"),
    "profile": ('{"type":"trace","version":1,"kind":"events","profile":"x"}', "", "unknown profile"),
    "switch": ('{"type":"trace","version":1,"kind":"events","switches":{"x":true}}', "", "unknown switch"),
    "setting": ('{"type":"trace","version":1,"kind":"events","settings":{"x":1}}', "", "unknown setting"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_line_spoils_its_own_trace_only(tmp_path: Path, case: str) -> None:
    before, line, reason = BROKEN[case]
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join([HEADER, UNLOAD, before, line, UNLOAD, HEADER, UNLOAD]))
    good, *rest = read_traces(path)
    assert isinstance(good, EventTrace)
    broken, last = rest
    assert isinstance(broken, BrokenTrace)
    assert reason in broken.reason
    assert broken.line == 3 + before.count("\n") + (1 if line else 0)
    assert str(broken).startswith(f"{path}:{broken.line}: ")
    assert isinstance(last, EventTrace)
    assert len(last.events) == 1


def test_files_that_hold_no_trace(tmp_path: Path) -> None:
    empty = tmp_path / "e.jsonl"
    empty.write_text("")
    assert [str(item) for item in read_traces(empty)] == [f"{empty}:1: the file contains no trace"]
    headless = tmp_path / "h.jsonl"
    headless.write_text(UNLOAD)
    (only,) = read_traces(headless)
    assert "header" in str(only)
    cut = tmp_path / "c.jsonl.gz"
    cut.write_bytes(gzip.compress(f"{HEADER}\n{UNLOAD}\n".encode() * 50)[:-12])
    *_, last = read_traces(cut)
    assert isinstance(last, BrokenTrace)
    assert "damaged" in last.reason
    no_gzip = tmp_path / "n.jsonl.gz"
    no_gzip.write_text(HEADER)
    (only,) = read_traces(no_gzip)
    assert "damaged" in str(only)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ([], "no list of states"),
        ({"states": [{"x": 1}]}, "state 0: no variable 'event'"),
        ({"states": [{"event": {"type": "observed"}}]}, "not an event"),
        ({"states": [{"event": {"type": "unload", "at_ms": 1}}]}, "leader_epoch"),
        ({"states": [], "#meta": {"fencepost": {"type": "trace", "version": 1, "kind": "wire"}}}, "not the header"),
    ],
)
def test_itf_that_does_not_hold_a_trace(data: object, reason: str) -> None:
    with pytest.raises(itf.NotItf, match=re.escape(reason)):
        itf.from_itf(data)
