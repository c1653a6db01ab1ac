"""The params of a chain's DAG: a JSON schema, from which the UI makes its form."""

from pathlib import Path

from airflow.sdk import Param

from operators.tasks.request import CHAIN_PARAMS, RUN_PARAMS
from tipcflow.plan import ALL_MODES

DEFAULT_MODE = "lite_train_lite_infer"


def run_params(config_dir: Path) -> dict[str, Param]:
    """The params that every chain has."""
    clusters = _names(config_dir / "clusters")
    return {
        "mode": Param(
            DEFAULT_MODE,
            type="string",
            enum=list(ALL_MODES),
            title="Mode",
            description="What is trained and inferred, on which data. `lite_train_lite_infer` takes minutes.",
        ),
        "cluster": Param(
            _default_cluster(clusters),
            type="string",
            minLength=1,
            examples=clusters,
            title="Cluster",
            description="Where it runs: a name in configs/clusters.",
        ),
        **_source_params(),
        "framework": Param(
            None,
            type=["null", "string"],
            title="Framework",
            description="What the nodes must have, for example `paddlepaddle==3.3.1`; empty for what they have.",
        ),
        "seed": Param(
            None,
            type=["null", "integer"],
            title="Seed",
            description="Seed of the training; equal seeds must give equal losses. Empty is 0.",
        ),
        "repeats": Param(
            1,
            type="integer",
            minimum=1,
            maximum=20,
            title="Repeats",
            description="Train this often, to compare the runs.",
        ),
        "diagnose": Param(
            False,
            type="boolean",
            title="Diagnose",
            description="Verbose logs of framework and NCCL: for finding out, not for measuring.",
        ),
        "policy": Param(
            "pr",
            type="string",
            enum=_names(config_dir / "policies") or ["pr"],
            title="Policy",
            description="Which checks, tolerances and budgets judge the run.",
        ),
    }


def _source_params() -> dict[str, Param]:
    """What is tested, and what it is compared with."""
    return {
        "suite_ref": Param(
            None,
            type=["null", "string"],
            title="Suite ref",
            description="Branch, tag or commit of the suite that is tested; empty for its folder as it is.",
        ),
        "base": Param(
            None,
            type=["null", "string"],
            title="Base",
            description="Of a change: its target branch, or a commit of that; it is compared with what the branch "
            "measured up to where the change begins. Empty for what is no change.",
        ),
    }


def chain_params(config_dir: Path) -> dict[str, Param]:
    """What the DAG without a chain of its own is told on top."""
    suites = _names(config_dir / "suites")
    return {
        "suite": Param(
            suites[0] if suites else None,
            type="string",
            minLength=1,
            examples=suites,
            title="Suite",
            description="A name in configs/suites.",
        ),
        "params_file": Param(
            "",
            type="string",
            title="Params file",
            description="Relative to the suite's root, or `<folder>/<name>`.",
        ),
    }


def allowed(*, chain: bool) -> tuple[str, ...]:
    """The names that `resolve` accepts; with those of `chain_params` for the DAG that has no chain."""
    return RUN_PARAMS if chain else (*CHAIN_PARAMS, *RUN_PARAMS)


def _names(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.yaml"))


def _default_cluster(clusters: list[str]) -> str:
    """The first real one: `example` shows how a cluster file looks."""
    return next((name for name in clusters if name != "example"), "example")
