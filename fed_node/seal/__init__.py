"""How an answer leaves: keys of an epoch, masks and encryption, and what must never be done twice."""
