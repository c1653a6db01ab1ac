"""Logs that were fetched from nodes -> series: read in bulk, in bounded memory, each line once."""
