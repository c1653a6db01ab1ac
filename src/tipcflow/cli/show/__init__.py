"""`tipcflow show`: one run."""
