"""The built wheel in environments outside the clone."""
