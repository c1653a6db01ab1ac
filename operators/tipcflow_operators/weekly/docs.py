"""Documentation of the DAG `weekly` in Airflow's UI."""

DOC = """### weekly

Certifies all chains, or those that match `chains`, on the full dataset: **select → certify, one task per chain → summary**. The longest
chains start first; the queue for slots assigns nodes.

**Schedule**: the cron expression in `TIPCFLOW_WEEKLY_CRON` (UTC), once the DAG is unpaused; or *Trigger* at any time.

**Results**: the log of the task `summary`. Each `certify` task is named after its chain and fails if the chain does; its log ends
with the chain's status and reason. The chain's DAG and the page *Certification* have the details.

**Stop**: mark the run as failed. Chains that have started continue to their verdict; mark their runs as failed to stop them too.
**Resume**: clear the run. Verdicts are kept, the task waits for running chains and starts the others.
"""

TASKS = {
    "select": """Selects the chains that match the globs, longest first. Chains whose params file type does not support the mode, or
whose framework the cluster does not have, are `not_run`: the log and the summary name them with the reason. An invalid param ends with
`config_error` before anything starts. **Failed?** The log names the param and its valid values.""",
    "certify": """Starts the DAG run of this chain and defers until it ends. Fails if and only if the chain fails. **Failed?** The
log ends with the chain's status and reason, and names the DAG run.""",
    "summary": """One row per chain: status, accuracy compared with its target and the last run, duration, reason. Also
written to `weekly/` in `TIPCFLOW_HOME`. **Failed?** At least one chain failed; the worst are listed first.""",
}
