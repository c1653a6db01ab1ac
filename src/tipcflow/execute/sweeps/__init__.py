"""What runs left behind: leases, folders, processes, old samples."""
