"""Bayesian networks over binned columns: a structure found by a genetic algorithm, its tables from summed counts."""
