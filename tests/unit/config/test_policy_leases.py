from pathlib import Path

import pytest
from pydantic import ValidationError

from tipcflow.config.loader import load_yaml
from tipcflow.config.policy import Policy

POLICIES = Path(__file__).parents[3] / "configs" / "policies"


def test_shipped_policies_lease_slots_or_nodes() -> None:
    pr, weekly = (load_yaml(POLICIES / f"{name}.yaml", Policy) for name in ("pr", "weekly"))
    assert (pr.lease, weekly.lease) == ("slots", "nodes")
    assert (pr.whole_nodes, weekly.whole_nodes) == (False, True)
    assert pr.lease_wait_s < weekly.lease_wait_s < 6 * 86400, (
        "the next weekly run must not queue up behind this one"
    )


@pytest.mark.parametrize(
    ("fields", "whole"),
    [
        ({}, True),
        ({"lease": "slots"}, False),
        ({"metrics": {"loss": {}}}, False),
        ({"metrics": {"loss": {}}, "lease": "nodes"}, True),
        ({"metrics": {"ips": {"gating": False}, "peak_rss": {}}}, False),
        ({"metrics": {"inference_time": {}}}, True),
    ],
)
def test_whole_nodes_are_leased_if_speed_is_gating(fields: dict[str, object], whole: bool) -> None:
    assert Policy.model_validate({"name": "p", **fields}).whole_nodes is whole


@pytest.mark.parametrize("wrong", [{"lease": "racks"}, {"lease_wait_s": 0}, {"lease_wait_s": float("inf")}])
def test_invalid_leases_are_rejected(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Policy.model_validate({"name": "p", **wrong})
