"""Column after column, each guessed from those before it by a small network: the exact likelihood of a row."""
