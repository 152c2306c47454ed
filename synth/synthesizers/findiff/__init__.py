"""DP-Fed-FinDiff: diffusion of tables. Masks that are lifted one column at a time; as published, Gaussian noise on
embeddings."""
