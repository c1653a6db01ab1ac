"""What a person reads in Airflow's UI about the DAG `weekly`."""

DOC = """### weekly

Certifies all chains, or those that fit `chains`, with whole data: **select → certify, one task per chain →
summary**. The longest begin first; the queue for slots gives each its nodes.

**When**: the cron expression in `TIPCFLOW_WEEKLY_CRON` (UTC), once the DAG is unpaused; or *Trigger*, at any time.

**Where to look**: the summary is in the log of the task `summary`. Each `certify` task is named after its chain;
it is red when the chain is, and its log ends with the chain's status and reason. The chain's own DAG and the page
*Certification* have the rest.

**To stop it**: mark the run as failed. Chains that have begun go on to their verdict; mark their runs as failed as
well to stop them. **To go on**: clear the run. Chains that have a verdict keep it, those that still run are waited
for, the rest is started.
"""

TASKS = {
    "select": """Chooses the chains that fit the globs, the longest first; those whose kind of file has no such
mode are left out, which the summary says. A wrong param ends here as `config_error`; nothing was started. **Red?**
The log says which param, and what it may be.""",
    "certify": """Starts the DAG run of this chain and waits for it, deferred. Red exactly when the chain is not
well. **Red?** The log ends with the chain's status and reason; the DAG run that it names has the rest.""",
    "summary": """One row per chain: status, accuracy against its target and the last time, duration, reason.
Also written to `weekly/` in `TIPCFLOW_HOME`. **Red?** A chain is: the worst stand first.""",
}
