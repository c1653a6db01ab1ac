"""Leases as rows: queue, requests, holders.

Public: nothing.
"""
