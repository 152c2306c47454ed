"""Model families, one folder each; `registry` has one line for each. A family imports counting/ or neural/, never a
sibling."""
