"""What every family on counts shares: bins worth counting, the party's side, estimates, trees, fitting, drawing."""
