"""What `evaluate` and `audit` read and write."""
