"""Logs of nodes -> series and samples of the attempt; each log line counts once.

Public: `kept_files`, `log_archive`, `run_files`.
"""
