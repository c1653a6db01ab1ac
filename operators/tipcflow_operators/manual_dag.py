"""DAGs that users start by hand."""

from collections.abc import Collection, Mapping
from datetime import timedelta

from airflow.sdk import DAG, Param

from tipcflow_operators.limits import SHORT

# A task that dies with its worker is retried and resumes its work. A failure that a task reports is final.
RESUMING = {"retries": 2, "retry_delay": timedelta(seconds=10), "owner": "tipcflow", "execution_timeout": SHORT}


def manual_dag(
    dag_id: str,
    *,
    description: str,
    doc: str,
    params: Mapping[str, Param],
    tags: Collection[str] = ("tipcflow", "compare"),
) -> DAG:
    """Return a DAG without a schedule and tasks."""
    return DAG(
        dag_id=dag_id,
        description=description,
        doc_md=doc,
        schedule=None,
        catchup=False,
        max_active_runs=16,
        # The DAG has no schedule; a paused DAG would only hold back triggered runs.
        is_paused_upon_creation=False,
        tags=tags,
        params=dict(params),
        default_args=RESUMING,
    )


def number_param(value: float, title: str, description: str, **bounds: float) -> Param:
    """Return a param for an integer, or for any number if the default is a float.

    Args:
        bounds: of the JSON schema, for example `minimum`.
    """
    kind = "integer" if isinstance(value, int) else "number"
    return Param(value, description, schema={"type": kind, "title": title, **bounds})
