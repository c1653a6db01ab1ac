"""Import of DAG files that `tipcflow import` wrote."""

from tipcflow_operators.chain.dag import certify_dag, chain_dags

__all__ = ["certify_dag", "chain_dags"]
