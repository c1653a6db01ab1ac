"""How long a controller and its nodes wait for each other: the key `waits` of a policy."""

from pydantic import Field

from tipcflow.config.base import ConfigModel

# A runner says something once a second while it is watched; less than a few of these is no silence.
LEAST_SILENCE_S = 3.0


class Waits(ConfigModel):
    """Seconds, all of them.

    Attributes:
        node_lease_s: a node goes on with a job for so long without hearing of any controller, then ends it.
        reconnect_s: a controller asks for a node whose link broke for so long, then the node counts as lost.
        silence_s: a connection on which a living job's runner says nothing for so long counts as broken.
        lease_ttl_s: the lease of a run at the desk ends so long after its process was last heard of; in Airflow it
            is half an hour, or a step's deadline.
    """

    node_lease_s: float = Field(default=600.0, ge=5, allow_inf_nan=False)
    reconnect_s: float = Field(default=120.0, ge=0, allow_inf_nan=False)
    silence_s: float = Field(default=20.0, ge=LEAST_SILENCE_S, allow_inf_nan=False)
    lease_ttl_s: float = Field(default=120.0, ge=5, allow_inf_nan=False)

    @property
    def peers_every_s(self) -> float:
        """How often whoever watches one member of a gang lets the others' nodes hear of a controller."""
        return self.node_lease_s * 0.4
