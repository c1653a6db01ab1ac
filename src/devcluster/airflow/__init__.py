"""A real Airflow on this machine for as long as somebody needs it: `stack.airflow_stack`."""
