"""The aggregator as a service: Flower's ServerApp and SuperLink, run folders, progress, figures."""
