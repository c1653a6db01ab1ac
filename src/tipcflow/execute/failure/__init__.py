"""Why an attempt failed: diagnosis of logs, root cause, failure class, the sentence of the reason."""
