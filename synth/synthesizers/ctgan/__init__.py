"""DP-Fed-CTGAN and its relatives: Fed-CTGAN, Fed-TGAN, CTGAN and DP-CTGAN are settings of the same code."""
