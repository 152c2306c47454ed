"""A federation on one machine: the processes that charts start, with their keys, certificates, ledgers, approvals."""
