"""Arguments and options that several commands have: what to run, where, and as what."""

from typing import Annotated

import typer

from tipcflow.domain import Compat
from tipcflow.domain.numbers.seed import LARGEST_SEED, SMALLEST_SEED

ParamsFile = Annotated[str, typer.Argument(help="Params file: a path, or relative to the suite's root.")]
SuiteName = Annotated[str, typer.Option("--suite", "-s", help="Suite: a name in configs/suites, or a YAML file.")]
Mode = Annotated[str, typer.Option("--mode", "-m", help="TIPC mode, for example lite_train_lite_infer.")]
ClusterName = Annotated[
    str, typer.Option("--cluster", "-c", help="Cluster: a name in configs/clusters, or a YAML file.")
]
Seed = Annotated[
    int | None,
    typer.Option(
        min=SMALLEST_SEED, max=LARGEST_SEED, help="Training seed (default 0); equal seeds must give equal losses."
    ),
]
Repeats = Annotated[int, typer.Option(min=1, max=20, help="Number of training repeats.")]
Diagnose = Annotated[bool, typer.Option("--diagnose", help="Verbose framework and NCCL logs.")]
CompatMode = Annotated[
    Compat, typer.Option(help="spec: what the params file specifies; bash: what the suite's script would run.")
]
PolicyName = Annotated[str, typer.Option(help="Policy: a name in configs/policies.")]
BudgetMinutes = Annotated[float, typer.Option(min=0, help="Maximum duration; 0 for no limit.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON to stdout.")]
