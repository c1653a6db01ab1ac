"""Logs of nodes -> series and samples of the attempt, each line counted once."""
