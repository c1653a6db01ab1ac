"""`tipcflow local`, `airflow` and `status`: local nodes and an Airflow that run until `down`.

Public: nothing.
"""
