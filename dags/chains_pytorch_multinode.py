"""The chains of suite pytorch_multinode: one Airflow DAG per params file in configs/chains/pytorch_multinode."""

from tipcflow_operators.chain.dag import chain_dags

globals().update(chain_dags("pytorch_multinode"))
