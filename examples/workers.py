"""Workers that share a queue in SQLite. One of them is killed, and the others finish its work.

Run it with ``python examples/workers.py``. It serves the group on a port, starts three worker processes, and kills one
of them in the middle. At the end it counts: every job was done, and never by two workers at the same time.

The queue is a table of jobs in eight lanes, and each lane is a partition of the group's work. A worker does the jobs of
its lanes in order and commits its position. The next owner of a lane continues from there.
"""

import asyncio
import signal
import sqlite3
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from fencepost import Settings, Share, ShareLost
from fencepost.remote import Groups
from fencepost_server.options import Address, Options
from fencepost_server.run import Ready, Setup, serve

LANES, JOBS, WORKERS = 8, 240, 3
QUICK = Settings(
    group_consumer_assignment_interval_ms=0,
    group_consumer_heartbeat_interval_ms=200,
    group_consumer_min_heartbeat_interval_ms=100,
    group_consumer_session_timeout_ms=1_000,
    group_consumer_min_session_timeout_ms=500,
)


def queue(path: Path) -> sqlite3.Connection:
    """Open the queue. Create it with its jobs if it does not exist."""
    jobs = sqlite3.connect(path, isolation_level=None, timeout=10)
    jobs.execute("PRAGMA journal_mode=WAL")
    jobs.execute("CREATE TABLE IF NOT EXISTS job (lane INTEGER, number INTEGER, done TEXT, PRIMARY KEY (lane, number))")
    jobs.executemany(
        "INSERT OR IGNORE INTO job VALUES (?, ?, '')",
        [(lane, number) for lane in range(LANES) for number in range(JOBS // LANES)],
    )
    return jobs


async def work(name: str, at: str, path: Path) -> None:
    """Run one worker process until SIGTERM. It then leaves its group."""
    me = asyncio.current_task()
    assert me is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, me.cancel)
    jobs = queue(path)
    async with Groups(at) as groups, groups.worker("shop", topics=["lanes"]) as worker:
        async for share in worker:
            print(f"worker {name} works on lanes {share.numbers('lanes')}", flush=True)
            try:
                await do(name, jobs, share)
            except ShareLost:
                continue  # another worker continues from the committed position


async def do(name: str, jobs: sqlite3.Connection, share: Share) -> None:
    """Do the jobs of these lanes in order, one per lane in each round, and commit after each round."""
    done = await share.committed()
    while await share.rest(0.02):
        for place in share:
            number = done.get(place, 0)
            if number == JOBS // LANES:
                continue
            jobs.execute(
                "UPDATE job SET done = done || ? WHERE lane = ? AND number = ?", (name, place.partition, number)
            )
            done[place] = number + 1
        await share.commit({place: done[place] for place in share if place in done})


async def main() -> None:
    """Serve the group, start the workers, kill one, and count the jobs."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "queue.db")
        jobs = queue(path)
        ready: asyncio.Future[Ready] = asyncio.get_running_loop().create_future()
        stop = asyncio.Event()
        setup = Setup(
            options=Options(listen=Address(host="127.0.0.1", port=0)), settings=QUICK, topics={"lanes": LANES}
        )
        hosting = asyncio.create_task(serve(setup, ready.set_result, stop))
        at = str((await ready).listen)
        workers = [
            await asyncio.create_subprocess_exec(sys.executable, __file__, name, at, str(path))
            for name in "ABC"[:WORKERS]
        ]
        killed = False
        while (left := jobs.execute("SELECT count(*) FROM job WHERE done = ''").fetchone()[0]) > 0:
            print(f"{left} jobs are left")
            if not killed and left < JOBS * 2 // 3:
                workers[0].kill()
                killed = True
                print("worker A is killed")
            await asyncio.sleep(0.5)
        for each in workers[1:]:
            each.terminate()
        await asyncio.gather(*[each.wait() for each in workers])
        stop.set()
        await hosting
        rows = jobs.execute("SELECT done FROM job").fetchall()
        again = sum(len(done) > 1 for (done,) in rows)
        print(f"{len(rows)} jobs are done; {again} were done again, because A had not committed them")
        jobs.close()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt, asyncio.CancelledError):
        asyncio.run(work(sys.argv[1], sys.argv[2], Path(sys.argv[3])) if len(sys.argv) > 1 else main())
