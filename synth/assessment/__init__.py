"""Scoring the released sample against the parties' own rows, under the same ledger as everything else."""
