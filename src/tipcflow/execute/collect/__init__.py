"""Logs of nodes -> series and samples of the attempt; each log line counts once.

Public: `log_archive`.
"""
