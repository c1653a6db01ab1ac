"""Classification of failures from logs."""
