"""Secure sums as pure functions on arrays and bytes; nothing here knows networks, files or tables.

errors                  every refusal, as a type
framing, derive         fields to bytes, secrets to keys: what everything below stands on
rounds                  run, plan, epoch, list, number, question: one value for all; exactly the declared parties
keys, announcement      pinned identities, signed session keys, admission
vouchers, sealed        signed digests, letters between parties
ranges                  what a vector must be before it is touched
pairing, masking        masked sums ......... with quantize: reals and counts in a ring
confirming              a mask of one's own, revealed only when a party stands by the sum
ckks, encrypted         encrypted sums ...... with slots: reals in slots
cross_tables            tables of two parties' columns in secret shares
ring_digits, vectors    both together: masked counts inside ciphertexts; counts and reals as one vector
"""
