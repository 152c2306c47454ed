"""Counting where the rows live: the public cell of every row as an expression, grouped and counted by the engine."""
