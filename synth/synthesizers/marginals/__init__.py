"""Noisy contingency tables summed over the parties, a graphical model fitted to them, rows drawn from the model."""
