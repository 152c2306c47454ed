"""The tables and ratios of the documentation, each made by one command: ``python -m benchmarks.<name>``."""
