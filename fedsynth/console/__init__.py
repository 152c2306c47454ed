"""Pages to watch by: one at the aggregator, one at each party. They look, and at a party they carry one decision."""
