"""VertiGAN made sound: one generator at the aggregator, one private critic a party, and noisy tables across parties."""
