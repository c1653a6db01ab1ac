"""`tipcflow scaling`: how throughput scales with nodes and devices."""
