"""The command line: one module a command, and how it shows progress, approvals and ledgers."""
