"""A process of its own that does one thing to a database when it reads a line: `contend.py WHAT URL …`."""

import json
import os
import signal
import sys
from typing import Any

from tipcflow.domain import Measurement
from tipcflow.store import Store
from tipcflow.store.series import measurements


def main() -> None:
    what, url, *rest = sys.argv[1:]
    if what == "open":
        _ready()
        with Store.open(url):
            _report(True)
        return
    with Store.open(url) as store:
        _ready()
        if what == "lease":
            run, owner, *slots = rest
            wanted = [(slot.partition(":")[0], int(slot.partition(":")[2])) for slot in slots]
            _report(store.leases.acquire(run, wanted, owner=owner, ttl_s=60))
        elif what == "measure":
            run, step, count, order = rest
            ordinals = range(int(count)) if order == "up" else range(int(count) - 1, -1, -1)
            _report(
                store.measurements.add(
                    Measurement(
                        run=run, step=step, node="node-a", metric="loss", phase="train", ordinal=n, value=n
                    )
                    for n in ordinals
                )
            )
        elif what == "die":
            _die_between_statements()
            run, step, count = rest
            store.measurements.add(
                Measurement(
                    run=run, step=step, node="node-a", metric=f"m{n:05}", phase="train", ordinal=ordinal, value=n
                )
                for n in range(int(count))
                for ordinal in range(2)
            )


def _die_between_statements() -> None:
    """SIGKILL when the first statement of a transaction with several is done."""
    insert = measurements.insert

    def once(*arguments: Any) -> None:
        insert(*arguments)
        os.kill(os.getpid(), signal.SIGKILL)

    measurements.insert = once


def _ready() -> None:
    _report("ready")
    sys.stdin.readline()


def _report(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
