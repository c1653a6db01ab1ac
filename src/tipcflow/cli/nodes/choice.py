"""Which clusters a command about nodes is about."""

from pathlib import Path
from typing import Annotated

import typer

from tipcflow.domain import Cluster, ConfigError

ClusterOption = Annotated[
    str | None,
    typer.Option(
        "--cluster", "-c", help="Name in configs/clusters, or a YAML file. Default: all except `example`."
    ),
]


def chosen(cluster: str | None) -> list[Cluster]:
    """The cluster of that name; without one, all in the folder of configurations but the example.

    Raises:
        ConfigError: there is none, or its file is wrong.
    """
    from tipcflow.config.cluster import load_cluster
    from tipcflow.config.settings import settings

    folder: Path = settings().config_dir
    names = [cluster] if cluster else sorted(path.stem for path in (folder / "clusters").glob("*.yaml"))
    names = [name for name in names if cluster or name != "example"]
    if not names:
        raise ConfigError(
            "there is no cluster",
            file=str(folder / "clusters"),
            expected="a file as example.yaml is",
            hint="or name one with --cluster",
        )
    return [load_cluster(name, folder) for name in names]
