"""Leases as rows: queue, requests, holders."""
