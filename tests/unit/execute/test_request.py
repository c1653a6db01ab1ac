"""How long a request waits for slots."""

from pathlib import Path

from tipcflow.config.policy import Policy
from tipcflow.execute.request import RunRequest


def request(**fields: float) -> RunRequest:
    return RunRequest(params="p.txt", suite="s", mode="m", cluster="c", config_dir=Path("configs"), **fields)  # type: ignore[arg-type]


def test_the_wait_for_slots_is_the_policys_unless_the_request_has_one() -> None:
    assert request().waits_s(Policy(name="p", lease_wait_s=7)) == 7
    assert request(wait_s=0.0).waits_s(Policy(name="p", lease_wait_s=7)) == 0
