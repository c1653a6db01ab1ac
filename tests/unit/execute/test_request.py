"""What a request says of time."""

from pathlib import Path

from tipcflow.config.policy import Policy
from tipcflow.execute.request import RunRequest


def request(**fields: float) -> RunRequest:
    return RunRequest(params="p.txt", suite="s", mode="m", cluster="c", config_dir=Path("configs"), **fields)  # type: ignore[arg-type]


def test_nobody_waits_for_an_answer_that_comes_too_late() -> None:
    assert request().left_s(900.0, 1000.0) == 900.0
    assert request(ends_at=1300.0).left_s(900.0, 1000.0) == 300.0
    assert request(ends_at=5000.0).left_s(900.0, 1000.0) == 4000.0, "a confirm run has minutes of its own"
    assert request(ends_at=10.0).left_s(900.0, 1000.0) == 1.0, "the first step is still tried, and cut"


def test_the_wait_for_slots_is_the_policys_unless_it_is_said() -> None:
    assert request().waits_s(Policy(name="p", lease_wait_s=7)) == 7
    assert request(wait_s=0.0).waits_s(Policy(name="p", lease_wait_s=7)) == 0
