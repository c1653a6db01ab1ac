"""The DAG `ab`: compares two versions of a suite or framework by pairs of runs.

Public: `dag`.
"""
