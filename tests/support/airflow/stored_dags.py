"""DAGs in Airflow's database, as its DAG processor stores them."""

from typing import Any

from airflow.sdk import DAG


def store_dag(dag: DAG) -> None:
    """Store a DAG in the database of this process's Airflow."""
    from airflow.models.dag import DagModel
    from airflow.models.dagbundle import DagBundleModel
    from airflow.models.serialized_dag import SerializedDagModel
    from airflow.models.tasklog import LogTemplate
    from airflow.serialization.serialized_objects import LazyDeserializedDAG
    from airflow.utils.session import create_session

    with create_session() as session:
        session.add(LogTemplate(filename="log", elasticsearch_id="log"))  # as `airflow db migrate` does
        session.merge(DagBundleModel(name="dags"))  # other tests of the same Airflow may have added it
        session.flush()
        session.merge(DagModel(dag_id=dag.dag_id, bundle_name="dags", fileloc=f"{dag.dag_id}.py", is_stale=False))
        session.flush()
        SerializedDagModel.write_dag(LazyDeserializedDAG.from_dag(dag), bundle_name="dags", session=session)


def runs_of(dag_id: str) -> list[Any]:
    """Return ID, params, user and state of the DAG's runs."""
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session

    with create_session() as session:
        rows = session.query(DagRun).filter(DagRun.dag_id == dag_id).all()
        return [(row.run_id, row.conf, row.triggering_user_name, str(row.state)) for row in rows]


def delete_runs(dag_id: str) -> None:
    """Delete the DAG's runs."""
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session

    with create_session() as session:
        session.query(DagRun).filter(DagRun.dag_id == dag_id).delete()
