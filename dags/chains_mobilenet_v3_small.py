"""The chains of suite mobilenet_v3_small: one Airflow DAG per params file in configs/chains/mobilenet_v3_small."""

from tipcflow_operators.chain.dag import chain_dags

globals().update(chain_dags("mobilenet_v3_small"))
