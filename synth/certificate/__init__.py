"""What was spent, who says so, and how an auditor holds it against everything that can be computed again."""
