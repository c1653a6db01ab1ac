"""The DAG of one model chain: its catalog, its parameters, its documentation.

Public: `catalog`, `dag`, `docs`, `params`.
"""
