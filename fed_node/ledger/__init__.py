"""What the party's rows have cost: an append-only chain, the book it adds up to, and the filter over a lifetime."""
