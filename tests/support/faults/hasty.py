"""`tipcflow` with little patience, so that a test need not wait ten minutes: `hasty.py run …`.

Shortened are: how long a broken link is waited for, how long a node may be silent, how long it goes on without a
controller, and how long a lease in the database lives when nobody renews it. A run may also say that somebody else
has triggered it.
"""

import functools
import os

from tipcflow.cli.main import main
from tipcflow.execute import chain, jobs, request, session

NODE_LEASE = "TIPCFLOW_TEST_NODE_LEASE_S"
RECONNECT = "TIPCFLOW_TEST_RECONNECT_S"
LEASE_TTL = "TIPCFLOW_TEST_LEASE_TTL_S"
SILENCE = "TIPCFLOW_TEST_SILENCE_S"
TRIGGER = "TIPCFLOW_TEST_TRIGGER"


def _give(module: object, name: str, argument: str, variable: str, kind: type = float) -> None:
    if variable in os.environ:
        value = kind(os.environ[variable])
        setattr(module, name, functools.partial(getattr(module, name), **{argument: value}))


if __name__ == "__main__":
    _give(jobs, "JobSpec", "lease_s", NODE_LEASE)
    _give(request, "RunRequest", "reconnect_s", RECONNECT)
    _give(request, "RunRequest", "trigger", TRIGGER, str)
    session.SILENCE_S = float(os.environ.get(SILENCE, session.SILENCE_S))
    _give(chain, "LeaseKeeper", "ttl_s", LEASE_TTL)
    main()
