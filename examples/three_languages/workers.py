"""Start one worker: ``python examples/three_languages/workers.py java``.

The worker produces to a topic and reads it in its groups, and reports each step as a line of JSON. Ctrl-D on an empty
line ends it. ``--help`` lists the options. Java and Go libraries are fetched from Maven and the Go module proxy."""

import argparse
import hashlib
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from shutil import which

from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.targets.jvm import jars
from fencepost_conformance.targets.jvm.builds import Build
from fencepost_conformance.targets.jvm.compiled import classes

HERE = Path(__file__).parent
RELEASE = "4.4.0"


def confluent() -> list[str]:
    """Return the command of the Python worker on confluent-kafka."""
    return [*_python("confluent_kafka"), str(HERE / "worker.py")]


def aiokafka() -> list[str]:
    """Return the command of the Python worker on aiokafka."""
    return [*_python("aiokafka"), str(HERE / "worker_aiokafka.py")]


def _python(module: str) -> list[str]:
    if find_spec(module) is None:
        raise CannotRun(f"needs {module.replace('_', '-')}: pip install -e '.[clients]'")
    return [sys.executable, "-u"]


def java() -> list[str]:
    """Return the command of the Java worker on Kafka's own clients."""
    libraries = jars.fetch(f"org.apache.kafka:kafka-clients:{RELEASE}", "org.slf4j:slf4j-nop:1.7.36")
    source = HERE / "Worker.java"
    compiled = classes("worker", Build(RELEASE), {source.name: source.read_text()}, libraries)
    path = os.pathsep.join(map(str, [compiled, *libraries]))
    return [jars.java(), "-XX:TieredStopAtLevel=1", "-Xmx256m", "-cp", path, "Worker"]


def go() -> list[str]:
    """Return the command of the Go worker on franz-go."""
    program = which("go")
    if program is None:
        raise CannotRun("needs Go (go.dev), 1.26 or later")
    return [str(built([program, "build", "-o"], HERE / "go"))]


def built(command: list[str], folder: Path) -> Path:
    """Build the folder into the user's cache, and return the program. The path of the output is appended to
    ``command``."""
    texts = [(each.name, each.read_bytes()) for each in sorted(folder.iterdir())]
    target = jars.cache_root() / "workers" / f"{folder.name}-{hashlib.sha256(repr(texts).encode()).hexdigest()[:16]}"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        made = target.with_suffix(f".{os.getpid()}")
        ended = subprocess.run([*command, str(made)], cwd=folder, capture_output=True, text=True, check=False)
        if ended.returncode != 0:
            last = ended.stderr.strip().splitlines()[-1:]
            raise CannotRun(f"{command[0]} cannot build the worker in {folder.name}: {' '.join(last)}")
        made.rename(target)
    return target


WORKERS = {"python": confluent, "aiokafka": aiokafka, "java": java, "go": go}


def main() -> None:
    words = argparse.ArgumentParser(description="Start one worker; Ctrl-D on an empty line ends it.")
    words.add_argument("worker", choices=WORKERS)
    words.add_argument("--bootstrap", default="127.0.0.1:9092", metavar="HOST:PORT")
    words.add_argument("--topic", default="orders")
    words.add_argument("--partitions", default=4, type=int, help="partitions of the topic")
    words.add_argument("--group", action="append", metavar="NAME:PROTOCOL", help="classic or consumer; may be repeated")
    given = words.parse_args()
    try:
        command = WORKERS[given.worker]()
    except CannotRun as reason:
        sys.exit(str(reason))
    groups = given.group or [f"{given.worker}:classic", "shared:classic"]
    os.execv(command[0], [*command, given.bootstrap, given.topic, str(given.partitions), given.worker, *groups])


if __name__ == "__main__":
    main()
