"""`tipcflow trigger`: starts a run in an Airflow and waits for its verdict."""
