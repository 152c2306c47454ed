"""One party of several that hold columns of the same people: its rows in their order, letters, shares of tables."""
