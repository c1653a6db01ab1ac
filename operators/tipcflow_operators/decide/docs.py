"""Documentation of the DAGs `decide_…` in Airflow's UI."""

_RULES = """The task `store` writes the decision with the name of the user who has started the DAG run. The Certification pages check the
user's role and start this DAG: the api-server may only read the metrics database.

**Failed?** The log of `store` names the param. Nothing was stored. **Again?** Submit the decision again: a cleared run is refused, so that no decision
is stored twice or in the name of another user.
"""

DOCS = {
    "decide_alert": f"""### decide_alert

Changes the state or the owner of an alert, or adds a comment (`tipcflow alerts set`). Requires the role operator or approver.

{_RULES}""",
    "decide_baseline": f"""### decide_baseline

Accepts, pins or resets the baselines of a run's metrics (`tipcflow baseline accept`). Requires the role approver.

{_RULES}""",
    "decide_quarantine": f"""### decide_quarantine

Quarantines a failure of a run: later failures with its signature do not block (`tipcflow quarantine add`). Requires the role approver.

{_RULES}""",
    "decide_release": f"""### decide_release

Ends a quarantine: from the next verdict on, the failure blocks (`tipcflow quarantine release`). Requires the role approver.

{_RULES}""",
}

TASK = """Checks and stores the decision. **Failed?** The log names the param; nothing was stored."""
