"""Documentation of the DAG `scaling` in Airflow's UI."""

DOC = """### scaling

Measures how a training scales over nodes and devices: **check → measure** (one mapped task per topology, the most nodes last)
**→ result**. The trainings are runs of the DAG `certify` in mode `benchmark_train`, one at a time, so that they do not slow each other down.

**Results**: the log of the task `result` has a table with samples/s, speed-up and efficiency per device; the page *Scaling* compares the series
with the previous one. The DAG run fails if a training fails or has no speed. Topologies that the cluster does not have are skipped.

**Stop**: mark the run as failed; a training that has started continues to its verdict. **Resume**: clear the run. Topologies with a verdict
are kept.
"""

TASKS = {
    "check": """Validates the params, reads the params file and plans every topology. An invalid param, an unknown topology or an
unknown precision ends with `config_error` before anything starts. **Failed?** The log names the param.""",
    "measure": """Starts the training of a topology when those before it have ended, and defers until it ends. **Skipped?** The cluster does
not have the topology. **Failed?** The log has the status and the reason of the run.""",
    "result": """Computes speed, speed-up and efficiency from the runs and stores them. Fails if a training failed or has no speed.""",
}
