"""A whole run: the driver of the CLI, the phases and steps that Airflow tasks run."""
