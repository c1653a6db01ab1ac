"""Maintenance of what runs leave behind: leases, folders, processes, old samples."""
