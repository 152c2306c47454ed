"""What an attacker who holds the synthetic table could learn about the real people behind it. One file per attack."""
