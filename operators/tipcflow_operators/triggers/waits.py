"""Times that all triggers share."""

# If a trigger fires within seconds of its task's deferral, the scheduler may not have stored the deferral yet and
# marks the task failed (apache/airflow issues 72716 and 71580).
SETTLE_S = 5.0
# Timeout of a database query, which is then retried: a trigger has deadlines to keep.
QUERY_S = 60.0
