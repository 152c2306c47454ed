"""Other makers of private synthetic tables beside ours: same rows, same ε, same figures, same machine."""
