"""Checks that need GPUs, in one command: `tools/gpu_day.sh`. Continues when a part fails, and writes a report.

Public: nothing.
"""
