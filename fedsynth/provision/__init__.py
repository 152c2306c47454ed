"""Certificates, keys and kits of a federation, made once by its operator and only ever added to."""
