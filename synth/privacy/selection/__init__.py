"""Votes for coordinates: perturbed sampling, EM-MDS, SubMDS and MagRR's bit, with the exact law that prices them."""
