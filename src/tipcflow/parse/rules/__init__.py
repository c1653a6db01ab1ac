"""How a line of a log becomes names and numbers."""
