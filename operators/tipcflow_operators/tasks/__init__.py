"""The operators of a chain: resolve, preflight, step, judge, verdict and the confirmation request.

Public: `request_confirm`, `result_verdict`, `phases`, `request`, `started_by`, `step`, `verdict`.
"""
