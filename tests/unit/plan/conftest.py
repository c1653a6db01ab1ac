"""Sample params files and clusters for the tests of the package `plan`."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tipcflow.domain import Cluster, Compat, Node, Plan
from tipcflow.plan import PlanOptions, build_plan

GOLDEN = Path(__file__).parents[2] / "golden" / "plan"
SUITE = ("models/template", "models/mobilenetv3_prod")


@pytest.fixture
def short_text() -> str:
    return (GOLDEN / "inputs" / "short_fleet.txt").read_text()


@pytest.fixture
def norm_text() -> str:
    return (GOLDEN / "inputs" / "norm_fleet.txt").read_text()


@pytest.fixture
def cluster() -> Callable[..., Cluster]:
    def make(*names: str, device: str = "cpu", slots: int = 2) -> Cluster:
        nodes = tuple(
            Node(
                name=name,
                address=f"10.77.0.{place}",
                device=device,  # type: ignore[arg-type]
                slots=slots,
                python=f"/envs/{name}/bin/python",
                workspace="/srv/tipcflow",
            )
            for place, name in enumerate(names or ("a", "b"), start=1)
        )
        return Cluster(name="two-cpu" if device == "cpu" else "gpus", nodes=nodes)

    return make


@pytest.fixture
def plan() -> Callable[..., Plan]:
    def make(
        text: str,
        mode: str = "lite_train_lite_infer",
        *,
        compat: Compat = Compat.SPEC,
        cluster: Cluster | None = None,
        dialects: tuple[str, ...] = SUITE,
        **options: object,
    ) -> Plan:
        return build_plan(
            text,
            file="test_tipc/configs/m/params.txt",
            suite="sample",
            chain="sample/m",
            dialects=dialects,
            mode=mode,
            compat=compat,
            cluster=cluster,
            options=PlanOptions(**options),  # type: ignore[arg-type]
        )

    return make
