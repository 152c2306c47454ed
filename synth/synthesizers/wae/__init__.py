"""DP-Fed-WAE: a Wasserstein autoencoder of tables; under `update: signds` trained by votes, as published."""
