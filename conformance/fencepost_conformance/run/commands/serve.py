"""``fencepost serve``: serve the coordinator on a port, for unmodified Kafka clients.

The port opens before the server is imported, which takes most of the start. So a client that connects at once waits a
little for its first answer, and need not retry. Therefore no import at the top of this file may import the server.
"""

from __future__ import annotations

import gc
import ipaddress
import sys
from pathlib import Path
from typing import Annotated

import typer

from fencepost.protocol.profiles import PROFILES
from fencepost.protocol.settings import BadSettings, Settings
from fencepost_server.net.port import open_port
from fencepost_server.observe.logs import FORMATS, configure
from fencepost_server.options import LABELLED_GROUPS, MAX_FRAME_BYTES, MIB, Address, Limits, Options
from fencepost_server.security.sasl import MECHANISMS

from ...common.addresses import parse_address
from ...common.errors import CannotRun
from ...common.nearest import unknown
from ...show.console import Result, finish
from ...traces.wire.settings import METRIC_GROUPS_HELP, OPTION_HELP, changed, given

#: The garbage collector looks at new objects after this many. A coordinator's data has no cycles, and grows with the
#: stored offsets: scanning it all the time took a fifth of the time of a commit.
_COLLECTED = (50_000, 20, 50)
_LEVELS = ("debug", "info", "warning", "error")


def serve(  # noqa: PLR0917
    listen: Annotated[str, typer.Option(help="HOST:PORT that clients connect to; port 0 picks a free one")] = (
        "127.0.0.1:9092"
    ),
    topic: Annotated[
        list[str] | None, typer.Option(metavar="NAME:PARTITIONS", help="a topic to create; may be repeated")
    ] = None,
    profile: Annotated[str, typer.Option(help=", ".join(sorted(PROFILES)))] = "intended",
    advertise: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="address that clients are sent to (default: the one they connected to)"),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            metavar="DIR or postgresql://…",
            help="folder, or shared database of several nodes, for all data; default: memory only",
        ),
    ] = None,
    flush: Annotated[
        bool,
        typer.Option(
            help="acknowledged data survives a crash of the machine; without it, as in Kafka, only of the process"
        ),
    ] = True,
    node_id: Annotated[int, typer.Option(min=0, help="this node's number among those on one database")] = 1,
    lease_seconds: Annotated[
        float,
        typer.Option(min=0.5, help="another node on the database takes over from a node that is silent for this time"),
    ] = 6.0,
    partitions: Annotated[
        int | None,
        typer.Option(
            min=1, help="partitions of the offsets topic, each with a coordinator; default: 50, or as in the folder"
        ),
    ] = None,
    auto_create: Annotated[
        int, typer.Option(min=0, help="partitions of a topic that is created on first use; 0: topics are not created")
    ] = 0,
    setting: Annotated[list[str] | None, typer.Option(help=OPTION_HELP)] = None,
    status: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="address for /metrics and a page of groups")
    ] = None,
    metric_groups: Annotated[int, typer.Option(min=0, help=METRIC_GROUPS_HELP)] = LABELLED_GROUPS,
    tls_cert: Annotated[Path | None, typer.Option(help="certificate in PEM; clients must then use TLS")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="its key in PEM, if that is in a separate file")] = None,
    tls_client_ca: Annotated[
        Path | None, typer.Option(help="clients need a certificate of these authorities (PEM)")
    ] = None,
    users: Annotated[
        Path | None, typer.Option(help="file with NAME:PASSWORD in each line; clients must then log in (SASL)")
    ] = None,
    sasl: Annotated[str, typer.Option(help="SASL mechanisms, separated by commas")] = ",".join(MECHANISMS),
    max_reauth_ms: Annotated[
        int, typer.Option(min=0, help="log-ins end after so many ms, as connections.max.reauth.ms; 0: they do not")
    ] = 0,
    acl: Annotated[Path | None, typer.Option(help="file of access rights; users without any may do nothing")] = None,
    superuser: Annotated[
        list[str] | None, typer.Option(help="User:NAME that may do everything; may be repeated")
    ] = None,
    max_connections: Annotated[int, typer.Option(min=1)] = 10_000,
    max_frame_mib: Annotated[int, typer.Option(min=1, help="the largest request")] = MAX_FRAME_BYTES // MIB,
    max_buffered_mib: Annotated[int, typer.Option(min=1, help="memory for requests of all connections")] = 256,
    max_data_mib: Annotated[int, typer.Option(min=1, help="memory for batches of all topics")] = 1024,
    idle_seconds: Annotated[
        float, typer.Option(min=1, help="close a connection after this time without a request")
    ] = 600,
    log: Annotated[str, typer.Option(help=f"{' or '.join(FORMATS)}, on standard error")] = "text",
    log_level: Annotated[str, typer.Option(help=", ".join(_LEVELS))] = "warning",
    faults: Annotated[
        str | None,
        typer.Option(
            metavar="PLAN", help="faults to inject, for testing clients: a file, or a number, which draws a plan"
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on standard output")] = False,
) -> None:
    """Serve the coordinator on a port until Ctrl-C or SIGTERM."""
    if profile not in PROFILES:
        raise CannotRun(unknown("profile", profile, PROFILES, f"known: {', '.join(sorted(PROFILES))}"))
    if log not in FORMATS:
        raise CannotRun(unknown("log", log, FORMATS, f"known: {', '.join(FORMATS)}"))
    if log_level not in _LEVELS:
        raise CannotRun(unknown("log level", log_level, _LEVELS, f"known: {', '.join(_LEVELS)}"))
    try:
        settings = changed(Settings(), given(setting))
    except (BadSettings, ValueError) as wrong:
        raise CannotRun(f"these settings contradict each other: {wrong}") from None
    if superuser and acl is None:
        raise CannotRun("--superuser needs --acl: without it every user may do everything")
    if tls_cert is None and (tls_key or tls_client_ca):
        raise CannotRun("--tls-key and --tls-client-ca need --tls-cert")
    database = data is not None and data.startswith(("postgresql://", "postgres://"))
    if not flush and (data is None or database):
        raise CannotRun(
            "--no-flush needs --data with a folder: in memory nothing is flushed, and a database flushes by itself"
        )
    if database and faults is not None:
        raise CannotRun("--faults needs a server in memory or with a folder, not nodes on a database")
    options = Options(
        listen=_address(listen, "--listen"),
        advertised=None if advertise is None else _address(advertise, "--advertise"),
        auto_create=auto_create,
        node_id=node_id,
        offsets_partitions=partitions,
        login_ms=max_reauth_ms,
        limits=Limits(
            connections=max_connections,
            frame_bytes=max_frame_mib * MIB,
            buffered_bytes=max_buffered_mib * MIB,
            data_bytes=max_data_mib * MIB,
            idle_s=idle_seconds,
        ),
    )
    gc.set_threshold(*_COLLECTED)
    with open_port(options.listen) as port:
        from .. import serving  # noqa: PLC0415  the server, once its port is open

        setup = serving.Setup(
            options=options,
            data=Path(data) if data and not database else None,
            database=data if database else None,
            lease_s=lease_seconds,
            flush=flush,
            settings=settings,
            profile=PROFILES[profile],
            topics=dict(serving.topic_of(each) for each in topic or ()),
            tls=None if tls_cert is None else serving.tls_of(tls_cert, tls_key, tls_client_ca),
            users=None if users is None else serving.users_of(users, sasl),
            acl=serving.acl_of(acl, superuser or []),
            status=None if status is None else _address(status, "--status"),
            metric_groups=metric_groups,
            faults=None if faults is None else serving.plan_of(faults),
            port=port,
        )
        configure(log, log_level)
        if not _loopback(options.listen.host) and (users is None or tls_cert is None):
            lacking = [*["a log-in (--users)"] * (users is None), *["TLS (--tls-cert)"] * (tls_cert is None)]
            print(f"fencepost serve: {listen} is open to the network without {' and '.join(lacking)}", file=sys.stderr)
        serving.run(setup, as_json=as_json)
    finish(Result("serve", None, done="ended"), as_json=as_json)


def _address(text: str, option: str) -> Address:
    found = parse_address(text, option)
    return Address(host=found.host, port=found.port)


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
