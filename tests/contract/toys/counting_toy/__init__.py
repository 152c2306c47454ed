"""A family on counts in three files: every column beside the target, and the model of these pairs."""
