"""What the party allows: approved plans, its policy, the plan in plain words, the administrator's decisions."""
