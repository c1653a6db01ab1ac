"""Params of a chain's DAG: JSON schemas, from which Airflow's UI builds the trigger form."""

from pathlib import Path

from airflow.sdk import Param

from operators.tasks.request import CHAIN_PARAMS, RUN_PARAMS
from tipcflow.plan import ALL_MODES

DEFAULT_MODE = "lite_train_lite_infer"


def run_params(config_dir: Path) -> dict[str, Param]:
    """Return the params of every chain."""
    clusters = _names(config_dir / "clusters")
    return {
        "mode": Param(
            DEFAULT_MODE,
            type="string",
            enum=list(ALL_MODES),
            title="Mode",
            description="Steps to run and amount of data. `lite_train_lite_infer` takes minutes.",
        ),
        "cluster": Param(
            _default_cluster(clusters),
            type="string",
            minLength=1,
            examples=clusters,
            title="Cluster",
            description="Cluster to run on: a name in configs/clusters.",
        ),
        **_source_params(),
        "framework": Param(
            None,
            type=["null", "string"],
            title="Framework",
            description="Framework required on the nodes, e.g. `paddlepaddle==3.3.1`; empty: any installed.",
        ),
        "seed": Param(
            None,
            type=["null", "integer"],
            title="Seed",
            description="Training seed; equal seeds must give equal losses. Empty: 0.",
        ),
        "repeats": Param(
            1,
            type="integer",
            minimum=1,
            maximum=20,
            title="Repeats",
            description="Number of training repeats (reproducibility).",
        ),
        "diagnose": Param(
            False,
            type="boolean",
            title="Diagnose",
            description="Verbose framework and NCCL logs, for debugging; timings are not comparable.",
        ),
        "policy": Param(
            "pr",
            type="string",
            enum=_names(config_dir / "policies") or ["pr"],
            title="Policy",
            description="Checks, tolerances and budgets of the verdict.",
        ),
    }


def _source_params() -> dict[str, Param]:
    """Return the params for the tested ref and its base."""
    return {
        "suite_ref": Param(
            None,
            type=["null", "string"],
            title="Suite ref",
            description="Branch, tag or commit of the suite to test; empty: the working tree.",
        ),
        "base": Param(
            None,
            type=["null", "string"],
            title="Base",
            description="Target branch or commit of a change; compared with runs up to the merge base. "
            "Empty: not a change.",
        ),
    }


def chain_params(config_dir: Path) -> dict[str, Param]:
    """Return the additional params of DAG `certify`, which has no chain of its own."""
    suites = _names(config_dir / "suites")
    return {
        "suite": Param(
            suites[0] if suites else None,
            type="string",
            minLength=1,
            examples=suites,
            title="Suite",
            description="Suite: a name in configs/suites.",
        ),
        "params_file": Param(
            "",
            type="string",
            title="Params file",
            description="Path relative to the suite's root, or `<folder>/<name>`.",
        ),
    }


def allowed(*, chain: bool) -> tuple[str, ...]:
    """Return the param names that `resolve` accepts; without `chain`, including those of `chain_params`."""
    return RUN_PARAMS if chain else (*CHAIN_PARAMS, *RUN_PARAMS)


def _names(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.yaml"))


def _default_cluster(clusters: list[str]) -> str:
    """Return the first cluster other than `example`, which only documents the format."""
    return next((name for name in clusters if name != "example"), "example")
