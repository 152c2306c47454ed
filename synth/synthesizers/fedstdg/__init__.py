"""FedSTDG: a recurrent Wasserstein autoencoder of sequences; under `update: signds` trained by SubMDS and MagRR."""
