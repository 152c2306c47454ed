"""The processes of a node: Flower's SuperNode and ClientApp, the resident worker, its log and figures."""
