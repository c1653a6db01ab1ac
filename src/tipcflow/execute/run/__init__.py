"""A whole run: the driver of the CLI, and the phases and steps that Airflow tasks run.

Public: `confirmation`, `context`, `driver`, `opening`, `phases`, `status_spool`, `step`.
"""
