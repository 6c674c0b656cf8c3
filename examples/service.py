"""A coordinator inside a FastAPI service: programs share work over HTTP, without any Kafka client.

Run it with ``python examples/service.py``; it needs ``pip install fastapi uvicorn``. It starts the service on a free
port of this machine, and three workers. One worker stops without leaving, and the others get its parts.

A worker repeats one call: ``POST /groups/orders/workers/ada``, with its epoch and the parts that it works on. The
answer names the parts that it may work on from now on, and the delay before the next call. The JSON carries the fields
of a KIP-848 heartbeat. A fenced worker gets a 409, and joins again with epoch 0.
"""

import asyncio
import json
import socket
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import uvicorn
from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from fencepost import ErrorCode, GroupBroker, MemoryStore, MisuseError, Settings, Topic
from fencepost.messages import ConsumerGroupHeartbeatRequest, TopicPartitions

TOPIC = Topic("parts", b"parts-of-the-job", partitions=6)
QUICK = Settings(
    group_consumer_heartbeat_interval_ms=100,
    group_consumer_min_heartbeat_interval_ms=50,
    group_consumer_session_timeout_ms=600,
    group_consumer_min_session_timeout_ms=200,
    group_consumer_assignment_interval_ms=0,
)
groups = GroupBroker(MemoryStore(), QUICK)


class Says(BaseModel):
    """The request of a worker. ``epoch`` 0 joins and -1 leaves; ``parts`` is None if unchanged."""

    epoch: int = 0
    parts: list[int] | None = None


class HeartbeatAnswer(BaseModel):
    """The answer to a worker. ``parts`` is None if unchanged."""

    epoch: int
    parts: list[int] | None
    again_in_ms: int


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    async with groups:
        groups.set_topics([TOPIC])
        yield


app = FastAPI(title="Work sharing", lifespan=lifespan)


@app.exception_handler(MisuseError)
async def misused(_: Request, error: Exception) -> JSONResponse:
    """Answer 400 to an invalid request, such as a number out of range."""
    return JSONResponse({"detail": str(error)}, 400)


@app.post("/groups/{group}/workers/{worker}")
async def beat(group: str, worker: str, says: Says) -> HeartbeatAnswer:
    joins = says.epoch == 0
    parts = () if joins else says.parts
    owned = None if parts is None else (TopicPartitions(TOPIC.topic_id, tuple(parts)),) if parts else ()
    answer = await groups.consumer_heartbeat(
        ConsumerGroupHeartbeatRequest(
            group,
            member_id=worker,
            member_epoch=says.epoch,
            rebalance_timeout_ms=5_000 if joins else -1,
            subscribed_topic_names=(TOPIC.name,) if joins else None,
            topic_partitions=owned,
        ),
        client_id=worker,
    )
    if answer.error_code is not ErrorCode.NONE:
        raise HTTPException(409, f"{answer.error_code.name}: {answer.error_message}")
    rows = answer.assignment
    mine = None if rows is None else sorted(part for row in rows for part in row.partitions)
    return HeartbeatAnswer(epoch=answer.member_epoch, parts=mine, again_in_ms=answer.heartbeat_interval_ms)


@app.get("/groups/{group}")
async def look(group: str) -> dict[str, list[int]]:
    view = groups.consumer_view(group)
    if view is None:
        raise HTTPException(404, f"there is no group {group}")
    return {
        member.member_id: sorted(part for row in member.assigned for part in row.partitions) for member in view.members
    }


# --- the workers, which only use HTTP ---


def call(url: str, says: object = None) -> dict[str, object]:
    data = None if says is None else json.dumps(says).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return dict(json.load(answer))


async def work(name: str, at: str, stops: asyncio.Event) -> None:
    url, epoch, parts = f"{at}/groups/orders/workers/{name}", 0, list[int]()
    while not stops.is_set():
        try:
            answer = await asyncio.to_thread(call, url, {"epoch": epoch, "parts": parts})
        except urllib.error.HTTPError as refused:
            print(f"{name} is rejected: {json.load(refused)['detail']}")
            epoch, parts = 0, []
            continue
        epoch = int(str(answer["epoch"]))
        if isinstance(answer["parts"], list):
            parts = answer["parts"]
            print(f"epoch {epoch}: {name} works on {parts}")
        await asyncio.sleep(int(str(answer["again_in_ms"])) / 1000)


async def main() -> None:
    with socket.create_server(("127.0.0.1", 0)) as here:
        at = f"http://127.0.0.1:{here.getsockname()[1]}"
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        serving = asyncio.create_task(server.serve(sockets=[here]))
        stops = {name: asyncio.Event() for name in ("ada", "bob", "cyd")}
        workers = [asyncio.create_task(work(name, at, each)) for name, each in stops.items()]
        await asyncio.sleep(1.5)
        stops["bob"].set()
        print("bob stops without leaving")
        await asyncio.sleep(1.5)
        print(f"GET /groups/orders: {await asyncio.to_thread(call, f'{at}/groups/orders')}")
        for each in stops.values():
            each.set()
        await asyncio.gather(*workers)
        server.should_exit = True
        with suppress(asyncio.CancelledError):
            await serving


asyncio.run(main())
