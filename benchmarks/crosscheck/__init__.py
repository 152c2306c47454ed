"""Our metrics beside the libraries they re-implement, each library in an environment of its own."""
