"""Timeouts between a controller and its nodes: the key `waits` of a policy."""

from pydantic import Field

from tipcflow.config.base import ConfigModel

# A watched runner reports once a second; a shorter timeout would trigger on normal delays.
LEAST_SILENCE_S = 3.0


class Waits(ConfigModel):
    """Timeouts in seconds.

    Attributes:
        node_lease_s: a node ends a job after this time without contact with a controller.
        reconnect_s: a controller tries to reconnect to a node for this time, then the node counts as lost.
        silence_s: a connection counts as broken if the runner of a running job is silent for this time.
        lease_ttl_s: the lease of a `tipcflow run` expires this long after the last heartbeat of its process; in
            Airflow it is half an hour, or a step's deadline.
    """

    node_lease_s: float = Field(default=600.0, ge=5, allow_inf_nan=False)
    reconnect_s: float = Field(default=120.0, ge=0, allow_inf_nan=False)
    silence_s: float = Field(default=20.0, ge=LEAST_SILENCE_S, allow_inf_nan=False)
    lease_ttl_s: float = Field(default=120.0, ge=5, allow_inf_nan=False)

    @property
    def peers_every_s(self) -> float:
        """Interval at which the watcher of one gang member renews the contact of the other members' nodes."""
        return self.node_lease_s * 0.4
