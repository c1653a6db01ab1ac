"""DAGs `decide_alert`, `decide_baseline`, `decide_quarantine` and `decide_release`: one task each."""

from collections.abc import Mapping
from typing import Any

from airflow.sdk import DAG, BaseOperator, Context, Param

from tipcflow.config.access.roles import DECISION_DAGS
from tipcflow.config.settings import settings
from tipcflow.domain import ConfigError
from tipcflow.domain.alert.entry import AlertState
from tipcflow_operators.airflow.database import refuse_sqlite_between_machines
from tipcflow_operators.airflow.errors import tipcflow_errors_fail_task
from tipcflow_operators.decide.docs import DOCS, TASK
from tipcflow_operators.manual_dag import manual_dag
from tipcflow_operators.tasks.request import given_params, param_error
from tipcflow_operators.tasks.verdict import set_note

_STATES = [state.value for state in AlertState]
_REASON = "Stored with the name of the user."


def _text(title: str, description: str = "", *, required: bool = False, longest: int = 200) -> Param:
    least = {"minLength": 1} if required else {}
    return Param("", description, schema={"type": "string", "title": title, "maxLength": longest, **least})


def _number(title: str, description: str) -> Param:
    return Param(1, description, schema={"type": "integer", "title": title, "minimum": 1})


_PARAMS: Mapping[str, Mapping[str, Param]] = {
    "decide_alert": {
        "number": _number("Alert", "Number of the alert."),
        "state": Param(
            None,
            "New state. Empty: the state stays.",
            schema={
                "type": ["null", "string"],
                "enum": [None, *(state.value for state in AlertState)],
                "title": "State",
            },
        ),
        "owner": _text("Owner", "User or team. Empty: the owner stays."),
        "why": _text("Reason or comment", f"Required for expected, fixed and invalid. {_REASON}", longest=1000),
        "group": Param(
            False, "Also the other alerts with the same cause.", schema={"type": "boolean", "title": "Group"}
        ),
    },
    "decide_baseline": {
        "run": _text("Run", "ID of a run that has ended.", required=True),
        "kind": Param(
            "accept",
            "accept: the history restarts with this run. pin: later runs are also compared with this one. "
            "reset: all accepted runs count again.",
            schema={"type": "string", "enum": ["accept", "pin", "reset"], "title": "Decision"},
        ),
        "metrics": Param(
            [],
            "Metrics of the run. Empty: all.",
            schema={"type": "array", "items": {"type": "string"}, "title": "Metrics"},
        ),
        "step": _text("Step", "Step of the run. Empty: all."),
        "why": _text("Reason", _REASON, required=True, longest=1000),
    },
    "decide_quarantine": {
        "run": _text("Run", "ID of the run with the failure.", required=True),
        "check_name": _text("Check", "Name of the check that failed.", required=True),
        "step": _text("Step", "Only if the check has several failures."),
        "leg": _text("Leg", "Only if the check has several failures."),
        "metric": _text("Metric", "Only if the check has several failures."),
        "owner": _text("Owner", "User or team that fixes the failure.", required=True),
        "until": _text("End (UTC)", "For example 2026-12-01. Empty: half of the policy's maximum."),
        "why": _text("Reason", _REASON, required=True, longest=1000),
    },
    "decide_release": {
        "number": _number("Quarantine", "Number of the quarantine."),
        "why": _text("Reason", _REASON, required=True, longest=1000),
    },
}
_DESCRIPTIONS = {
    "decide_alert": "Change the state or owner of an alert, or comment on it",
    "decide_baseline": "Accept, pin or reset the baselines of a run",
    "decide_quarantine": "Quarantine a failure of a run",
    "decide_release": "End a quarantine",
}


class DecideOperator(BaseOperator):
    """Stores a decision in the name of the user who has started the DAG run.

    Args:
        decision: ID of the DAG, a key of `tipcflow.execute.decide.decisions.KINDS`.
    """

    def __init__(self, *, decision: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.decision = decision

    def execute(self, context: Context) -> str:
        """Return a sentence about what was stored. An invalid param is a `config_error`, and nothing is stored."""
        from tipcflow.execute.decide.decisions import field_of, read_decision
        from tipcflow.store import Store

        with tipcflow_errors_fail_task():
            refuse_sqlite_between_machines()
            who = _user_of(context)
            try:
                decision = read_decision(self.decision, given_params(context))
                with Store.open_in_task() as store:
                    done = decision.apply(store, who, settings().config_dir)
            except ConfigError as error:
                raise param_error(error, {error.key: field_of(error.key)}) from error
        self.log.info("%s, by %s", done, who)
        set_note(context, done, self.log)
        return done


def _user_of(context: Context) -> str:
    """Return the user who has started the DAG run.

    Raises:
        ConfigError: none has, or the task ran before.
    """
    tries = context["ti"].try_number
    if tries > 1:
        raise ConfigError(
            f"this decision ran before (try {tries}): a decision is stored once", hint="submit the decision again"
        )
    user = context["dag_run"].triggering_user_name
    if not user:
        raise ConfigError(
            "no user has started this DAG run", hint="start the DAG in Airflow or on a page Certification"
        )
    return str(user)


def decide_dag(dag_id: str) -> DAG:
    """Return a DAG with the task `store`; `dag_id` is a key of DECISION_DAGS."""
    dag = manual_dag(
        dag_id,
        description=_DESCRIPTIONS[dag_id],
        doc=DOCS[dag_id],
        params=_PARAMS[dag_id],
        tags=("tipcflow", "decide"),
    )
    with dag:
        # Not repeated: the user sees the failure, and decides again.
        DecideOperator(task_id="store", decision=dag_id, doc_md=TASK, retries=0)
    return dag


def decide_dags() -> dict[str, DAG]:
    """Return all of these DAGs, by ID."""
    return {dag_id: decide_dag(dag_id) for dag_id in DECISION_DAGS}
