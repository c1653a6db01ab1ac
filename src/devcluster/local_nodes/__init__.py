"""Local nodes: sshd in network namespaces (as root) or on loopback addresses.

Public: `init`, `kinds`, `nodes`, `processes`, `sshd`, `state`.
"""
