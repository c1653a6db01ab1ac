"""Selection of clusters for the `nodes` commands."""

from pathlib import Path
from typing import Annotated

import typer

from tipcflow.domain import Cluster, ConfigError

ClusterOption = Annotated[
    str | None,
    typer.Option(
        "--cluster", "-c", help="Name in configs/clusters, or a YAML file. Default: all in use, without `example`."
    ),
]


def chosen(cluster: str | None) -> list[Cluster]:
    """The cluster of that name; without a name, all configured clusters in use but the example.

    A cluster that is not in use is named on stderr.

    Raises:
        ConfigError: no such cluster, or its file is invalid.
    """
    from tipcflow.config.cluster import load_cluster
    from tipcflow.config.settings import settings

    folder: Path = settings().config_dir
    names = [cluster] if cluster else sorted(path.stem for path in (folder / "clusters").glob("*.yaml"))
    names = [name for name in names if cluster or name != "example"]
    if not names:
        raise ConfigError(
            "no cluster is configured",
            file=str(folder / "clusters"),
            expected="a file like example.yaml",
            hint="or pass one with --cluster",
        )
    return [load_cluster(name, folder) for name in names if cluster or _is_in_use(name, folder)]


def _is_in_use(name: str, folder: Path) -> bool:
    from tipcflow.config.cluster import unset_variables
    from tipcflow.execute.node.in_use import why_unused
    from tipcflow.store import Store

    if not unset_variables(name, folder):
        return True
    with Store.open() as store:
        unused = why_unused(store, name, folder)
    if unused:
        typer.echo(f"{unused} (--cluster {name} selects it)", err=True)
    return not unused


def chosen_inventories(cluster: str | None) -> list[Cluster]:
    """The chosen clusters whose nodes are known without a run.

    Raises:
        ConfigError: as of `chosen`, or Slurm allocates the nodes of the named cluster.
    """
    inventories = [known for known in chosen(cluster) if known.slurm is None]
    if cluster and not inventories:
        raise ConfigError(
            "its nodes are allocated by Slurm for each run",
            key="--cluster",
            found=cluster,
            hint="see sinfo and squeue",
        )
    return inventories
