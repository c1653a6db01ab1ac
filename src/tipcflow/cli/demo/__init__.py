"""`tipcflow demo`: a local cluster with Airflow.

Public: nothing.
"""
