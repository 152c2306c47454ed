"""Plans over the same people: who holds which columns, how rows are aligned, and what that costs."""
