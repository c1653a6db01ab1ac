"""Nodes on this machine: sshd in network namespaces (as root) or on loopback addresses."""
