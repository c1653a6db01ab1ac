"""How long a task may hold a worker (`execution_timeout`): the limit of last resort, for a task that hangs.

Airflow's clock runs while the task is on a worker and starts at 0 whenever a deferred task is resumed; waiting in
the triggerer does not count, and has deadlines of its own. A task that exceeds this limit is tried again and finds
what it had begun.
"""

from datetime import timedelta
from pathlib import Path
from typing import Any

from tipcflow.config.loader import load_yaml
from tipcflow.config.policy import Policy
from tipcflow.domain import ConfigError

# Fetching and reading the logs of a run, removing its processes, and all that has deadlines of minutes.
MARGIN = timedelta(hours=1)
# Tasks that start nothing on nodes: a suite's archive is made, checks are asked.
SHORT = timedelta(hours=1)


def longest(config_dir: Path) -> timedelta:
    """What the longest run of any policy may take, with its confirm run and a margin."""
    known = [_minutes(path) for path in sorted((config_dir / "policies").glob("*.yaml"))]
    return timedelta(minutes=max(known, default=_of(Policy(name="default")))) + MARGIN


def _minutes(path: Path) -> float:
    """The minutes of a policy; those of the default one for a file that is no policy, which `resolve` says."""
    try:
        policy = load_yaml(path, Policy)
    except ConfigError:
        return _of(Policy(name=path.stem))
    return max([_of(policy), *(_of_fields(policy, one.set) for one in policy.overrides)])


def _of(policy: Policy) -> float:
    return policy.budget_minutes + policy.confirm_minutes


def _of_fields(policy: Policy, fields: dict[str, Any]) -> float:
    names = ("budget_minutes", "confirm_minutes")
    return sum(float(fields.get(name, getattr(policy, name))) for name in names)
