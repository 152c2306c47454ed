"""GS-WGAN: the generator stays at the aggregator, critics stay with the rows; only their summed, noisy slopes leave."""
