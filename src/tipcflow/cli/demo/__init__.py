"""`tipcflow demo`: nodes and an Airflow on this machine."""
