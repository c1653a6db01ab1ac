import os
import tempfile

# Before anything imports Airflow, which makes its home when it is imported.
os.environ.setdefault("AIRFLOW_HOME", tempfile.mkdtemp(prefix="tipcflow-airflow-home-"))
