"""The chains of suite parameter_server: one Airflow DAG per params file in configs/chains/parameter_server."""

from tipcflow_operators.chain.dag import chain_dags

globals().update(chain_dags("parameter_server"))
