"""Maintenance of what runs leave behind: leases, folders, processes, old samples.

Public: `late_logs`, `leases`, `leftovers`, `maintenance`, `node_folders`, `node_histories`, `old_events`,
`prune`, `prune_run`, `reap`, `slow_nodes`, `retention`, `runs`.
"""
