"""Sums of the parties' answers: messages out and back, epochs of keys, adding without seeing a summand."""
