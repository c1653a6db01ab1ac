"""Old names of `tipcflow_operators`, for tasks that were deferred, and DAG files written, before version 0.2.

Not part of the wheel: importable where Airflow's plugins folder is this clone's `plugins/`.
"""
