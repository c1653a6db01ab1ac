"""`tipcflow trigger`: starts runs in Airflow and waits for their verdicts.

Public: nothing.
"""
