"""`execution_timeout` of tasks: the limit of last resort for a task that hangs.

Airflow measures the time on a worker and starts at 0 whenever a deferred task resumes; time in the triggerer does
not count and has deadlines of its own. A task that exceeds this limit is retried and resumes its work.
"""

from datetime import timedelta
from pathlib import Path
from typing import Any

from tipcflow.config.loader import load_yaml
from tipcflow.config.policy import Policy
from tipcflow.domain import ConfigError

# Fetching and parsing a run's logs, removing its processes, and work with deadlines of minutes.
MARGIN = timedelta(hours=1)
# Tasks that start nothing on nodes: packing the suite, evaluating checks.
SHORT = timedelta(hours=1)


def longest(config_dir: Path) -> timedelta:
    """Return the maximum duration of a run over all policies, including its confirm runs and a margin."""
    known = [_minutes(path) for path in sorted((config_dir / "policies").glob("*.yaml"))]
    return timedelta(minutes=max(known, default=_of(Policy(name="default")))) + MARGIN


def _minutes(path: Path) -> float:
    """Return the minutes of a policy file; the default policy's if it is invalid, which `resolve` reports."""
    try:
        policy = load_yaml(path, Policy)
    except ConfigError:
        return _of(Policy(name=path.stem))
    return max([_of(policy), *(_of_fields(policy, override.set) for override in policy.overrides)])


def _of(policy: Policy) -> float:
    return policy.budget_minutes + policy.confirm_runs * policy.confirm_minutes


def _of_fields(policy: Policy, fields: dict[str, Any]) -> float:
    names = ("budget_minutes", "confirm_minutes", "confirm_runs")
    budget, confirm, runs = (float(fields.get(name, getattr(policy, name))) for name in names)
    return budget + runs * confirm
