"""`tipcflow local`, `airflow` and `status`: local nodes and an Airflow that stay until `down`.

Public: nothing.
"""
