"""Nodes from Slurm: how an allocation is requested, and how its nodes are reached."""

from pydantic import Field

from tipcflow.domain.base import Frozen

# Stands for the node's name in folders.
NODE = "{node}"


class SlurmStep(Frozen):
    """The place of a node in an allocation: commands run there as steps, started on the login node.

    Attributes:
        login: whether it is the login node itself, which runs commands outside of every allocation.
        local: whether the login node is this machine; otherwise it is reached by SSH.
        job: ID of the allocation; '' for a node that is not allocated yet.
        port: port of the node's slurmd, which other nodes can reach; 0 if unknown.
        gres: generic resources of every step, as of `srun --gres`; '' for none.
    """

    login: bool = False
    local: bool = False
    job: str = ""
    port: int = 0
    gres: str = ""


class SlurmSource(Frozen):
    """The request for an allocation; empty values are left to Slurm's defaults.

    Attributes:
        local: whether the login node is this machine.
        partition, constraint, account, qos, gres: options of `sbatch`.
        time_limit_minutes: after this time Slurm ends the allocation.
        workspace, cache: those of a node, with `{node}` for its name.
    """

    local: bool = False
    partition: str = ""
    constraint: str = ""
    account: str = ""
    qos: str = ""
    gres: str = ""
    time_limit_minutes: int = Field(ge=1)
    workspace: str
    cache: str = ""

    def of_node(self, name: str) -> dict[str, str]:
        """Return the folders of the node of that name."""
        return {
            key: value.replace(NODE, name) for key, value in (("workspace", self.workspace), ("cache", self.cache))
        }
