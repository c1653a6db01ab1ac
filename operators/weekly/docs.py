"""Documentation of the DAG `weekly` in Airflow's UI."""

DOC = """### weekly

Certifies all chains, or those that match `chains`, on full data: **select → certify (one task per chain) →
summary**. The longest chains start first; the slot queue assigns the nodes.

**Schedule**: the cron expression in `TIPCFLOW_WEEKLY_CRON` (UTC), once the DAG is unpaused; *Trigger* starts it at
any time.

**Results**: the log of task `summary`. Each `certify` task is named after its chain and fails if the chain fails;
its log ends with the chain's status and reason. For details see the chain's own DAG and the page *Certification*.

**Stop**: mark the run as failed. Chains that have started run to their verdict; mark their runs as failed to stop
them. **Resume**: clear the run. Chains with a verdict keep it, running chains are awaited, the others are started.
"""

TASKS = {
    "select": """Selects the chains that match the globs, the longest first. Chains whose kind of file does not
    support the mode are skipped and listed in the summary. A wrong param fails here as `config_error`, before
    anything starts. **If it fails**: the log names the param and its allowed values.""",
    "certify": """Starts the DAG run of this chain and defers until it ends. Fails if and only if the chain fails.
    **If it fails**: the log ends with the chain's status and reason and names the chain's DAG run.""",
    "summary": """One row per chain: status, accuracy against its target and the previous run, duration, reason.
    Also written to `weekly/` in `TIPCFLOW_HOME`. **If it fails**: at least one chain failed; the worst are listed
    first.""",
}
