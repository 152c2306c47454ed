"""The first inquiry of every run: one noisy histogram a column, and the published alternatives to it."""
