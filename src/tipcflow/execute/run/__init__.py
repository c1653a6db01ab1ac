"""A whole run: the driver of the CLI, and the phases and steps that Airflow tasks run.

Public: `confirmation`, `context`, `driver`, `phases`, `status_spool`, `step`.
"""
