"""FedVAE: a variational autoencoder of tables (TVAE), trained by averaging; its rows are drawn from the softmax."""
