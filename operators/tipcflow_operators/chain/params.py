"""Params of a chain's DAG, as a JSON schema from which the UI generates the form."""

import os
import re
from pathlib import Path

from airflow.sdk import Param

from tipcflow.config.settings import settings
from tipcflow.domain.numbers.seed import LARGEST_SEED, SMALLEST_SEED
from tipcflow.plan import ALL_MODES
from tipcflow_operators.tasks.request import (
    CASE_PATTERN,
    CHAIN_PARAMS,
    FRAMEWORK_PATTERN,
    NODES_OF_PATTERN,
    REF_PATTERN,
    RUN_PARAMS,
    WHEEL_PATTERN,
)

DEFAULT_MODE = "lite_train_lite_infer"
# `tipcflow local up` writes this cluster while Airflow runs, which reads the files of its DAGs every few minutes.
_LOCAL = "local"
_DEMO_PATTERN = r"/.+/nodes/[0-9a-f]+/cluster\.yaml"
# Escaped where Python and JavaScript agree; `re.escape` escapes more.
_SPECIAL = re.compile(r"[.^$*+?{}()|\[\]\\]")
# Connections of local nodes in the environment of the demo's Airflow.
_DEMO_CONNECTION = "AIRFLOW_CONN_TIPCFLOW_LOCAL_"


def run_params(config_dir: Path) -> dict[str, Param]:
    """Params of every chain."""
    demo = _demo_cluster(settings().home)
    clusters = [*demo, *_names(config_dir / "clusters")]
    default = _default_cluster(clusters)
    return {
        "mode": Param(
            DEFAULT_MODE,
            type="string",
            enum=list(ALL_MODES),
            title="Mode",
            description="What to train and infer, on which data. `lite_train_lite_infer` takes minutes.",
        ),
        "cluster": Param(
            default,
            type="string",
            minLength=1,
            pattern=_one_of([*clusters, default, _LOCAL], _DEMO_PATTERN),
            examples=clusters,
            title="Cluster",
            description="Name of a cluster in configs/clusters, or the cluster file of the running demo.",
        ),
        **_source_params(),
        **_framework_params(),
        **_options(),
        "policy": Param(
            "pr",
            type="string",
            enum=_names(config_dir / "policies") or ["pr"],
            title="Policy",
            description="Policy that sets check tolerances and time limits.",
        ),
    }


def _framework_params() -> dict[str, Param]:
    """Params of the tested framework."""
    return {
        "framework": Param(
            None,
            type=["null", "string"],
            pattern=FRAMEWORK_PATTERN,
            title="Framework",
            description="Required framework, for example `paddlepaddle>=3.3`; a release `paddlepaddle==3.3.1` "
            "that a node does not have is installed for the run. Empty accepts any.",
        ),
        "framework_wheel": Param(
            None,
            type=["null", "string"],
            pattern=WHEEL_PATTERN,
            title="Framework wheel",
            description="Wheel that is installed for the run: an address, or a file in TIPCFLOW_HOME/wheels.",
        ),
        "framework_sha256": Param(
            None,
            type=["null", "string"],
            title="Framework sha256",
            description="Hash of the wheel.",
        ),
    }


def _options() -> dict[str, Param]:
    """Params of the steps."""
    return {
        "seed": Param(
            None,
            type=["null", "integer"],
            minimum=SMALLEST_SEED,
            maximum=LARGEST_SEED,
            title="Seed",
            description="Training seed; equal seeds must give equal losses. Default: 0.",
        ),
        "repeats": Param(
            1,
            type="integer",
            minimum=1,
            maximum=20,
            title="Repeats",
            description="How often to repeat the training to check reproducibility.",
        ),
        "diagnose": Param(
            False,
            type="boolean",
            title="Diagnose",
            description="Verbose logs of framework and NCCL, for debugging; the run is not compared with others.",
        ),
        "drop": Param(
            None,
            type=["null", "array"],
            items={"type": "string", "minLength": 1},
            title="Drop",
            description="Globs of inference legs (`step/leg`) that this run leaves out; they stay unproven.",
        ),
    }


def _source_params() -> dict[str, Param]:
    """Params of the tested commit and its base."""
    return {
        "suite_ref": Param(
            None,
            type=["null", "string"],
            pattern=REF_PATTERN,
            title="Suite ref",
            description="Branch, tag or commit of the suite to test; empty for the working tree.",
        ),
        "base": Param(
            None,
            type=["null", "string"],
            pattern=REF_PATTERN,
            title="Base",
            description="Target branch of a change, or a commit of it; results are compared up to the merge base. "
            "Empty if not a change.",
        ),
    }


def chain_params(config_dir: Path) -> dict[str, Param]:
    """Additional params of the DAG `certify`."""
    suites = _names(config_dir / "suites")
    return {
        "suite": Param(
            _default_suite(suites, config_dir),
            type="string",
            minLength=1,
            pattern=_one_of(suites, r".+" if not suites else ""),
            examples=suites,
            title="Suite",
            description="Name of a suite in configs/suites.",
        ),
        "params_file": Param(
            "",
            type="string",
            title="Params file",
            description="Path relative to the suite's root, or `<folder>/<name>`.",
        ),
        "case": Param(
            None,
            type=["null", "string"],
            pattern=CASE_PATTERN,
            title="Case",
            description="Case of mode benchmark_train, as in `dynamic_bs8_fp32_DP_N1C2`. Empty: all cases.",
        ),
        "only": Param(
            None,
            type=["null", "array"],
            items={"type": "string", "minLength": 1},
            title="Only",
            description="Runs of a bisection: steps to execute, with those that they need. Empty: all steps.",
        ),
        "nodes_of": Param(
            None,
            type=["null", "string"],
            pattern=NODES_OF_PATTERN,
            title="Nodes of",
            description="Run on the same nodes as the run with this ID. Empty: any nodes of the cluster.",
        ),
        "lease_to": Param(
            None,
            type=["null", "string"],
            pattern=NODES_OF_PATTERN,
            title="Lease to",
            description="ID of the run that follows and gets the leases. Set by the DAG `ab`.",
        ),
    }


def allowed(*, chain: bool) -> tuple[str, ...]:
    """The param names that `resolve` accepts, with those of `chain_params` for the DAG `certify`."""
    return RUN_PARAMS if chain else (*CHAIN_PARAMS, *RUN_PARAMS)


def _names(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.yaml"))


def _default_suite(suites: list[str], config_dir: Path) -> str | None:
    """The first suite with chains in this deployment; the files of public suites are there for all deployments."""
    with_chains = (name for name in suites if (config_dir / "chains" / name).is_dir())
    return next(with_chains, suites[0] if suites else None)


def _default_cluster(clusters: list[str]) -> str:
    """The demo's or local nodes if they run, otherwise the first cluster other than the template `example`."""
    if clusters and "/" in clusters[0]:
        return clusters[0]
    if _LOCAL in clusters:
        return _LOCAL
    return next((name for name in clusters if name != "example"), "example")


def _demo_cluster(home: Path) -> list[str]:
    """The cluster file of the demo that this Airflow belongs to; empty in any other Airflow."""
    if not any(name.startswith(_DEMO_CONNECTION) for name in os.environ):
        return []
    files = sorted(home.glob("nodes/*/cluster.yaml"), key=lambda file: file.stat().st_mtime)
    return [str(file) for file in files[-1:]]


def _one_of(names: list[str], *patterns: str) -> str:
    """A pattern of JSON schema that matches the names, and what the patterns match."""
    escaped = [_SPECIAL.sub(r"\\\g<0>", name) for name in dict.fromkeys(names)]
    return f"^({'|'.join([*escaped, *filter(None, patterns)])})$"
