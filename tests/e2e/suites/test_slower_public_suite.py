"""A training of a public suite that becomes slower, after honest runs as a user makes them.

`TIPC_SUITES` names the repository (see test_public_suites.py). While other tests run on the same cores, the batch
cost of honest runs has a tolerance of 60 to 200 %, so a slowdown of 30 % cannot be decided by one run; `tipcflow
ab` decides smaller ones (benchmarks/ab_pairs.py).
"""

from pathlib import Path

import pytest
from tests.e2e.suites.public_site import STEP6, WEIGHTS, PublicSite, changed

from tipcflow.domain import Status

pytestmark = [pytest.mark.e2e, pytest.mark.full, pytest.mark.timeout(5400)]
PARAMS = f"{STEP6}/train_infer_python.txt"
FOLDER = "tutorials/mobilenetv3_prod/Step6"
# More than the change-point detector needs to know the noise (`detect: min_history`).
HONEST = 12
ONE_TRAINING = (f"{FOLDER}/{PARAMS}", "gpu_list:0|0,1", "gpu_list:0")
SLOWER = (
    f"{FOLDER}/train.py",
    "        train_run_cost += time.time() - train_start\n",
    "        time.sleep(9 * (time.time() - train_start))\n{}",
)


def test_training_of_ten_times_the_duration_is_a_regression(public: PublicSite, tmp_path: Path) -> None:
    public.serve(WEIGHTS, b"unused")
    public.clones["models_step6"] = changed("models", tmp_path / "honest", [ONE_TRAINING])
    for _ in range(HONEST):
        honest = public.run_on_healthy_node("models_step6", PARAMS)
        assert honest.run.status is Status.PASS, honest.output
    public.clones["models_step6"] = changed("models", tmp_path / "slower", [ONE_TRAINING, SLOWER])
    slower = public.run_on_healthy_node("models_step6", PARAMS)
    assert slower.run.status is Status.REGRESSION, slower.output
    assert "speed.batch_cost" in slower.run.reason
