"""report.html: one self-contained page about a synthetic table, for people who are not statisticians."""
