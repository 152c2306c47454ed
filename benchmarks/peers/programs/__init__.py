"""One program per package. Each runs in its package's own environment, so it may import only `job` from here."""
