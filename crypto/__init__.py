"""Secure sums as pure functions on arrays and bytes; nothing here knows networks, files or tables.

errors                  every refusal, as a type
framing, derive         fields to bytes, secrets to keys: what everything below stands on
rounds                  run, epoch, round, and exactly the declared parties
keys, announcement      pinned identities, signed session keys, admission
vouchers, sealed        signed digests, letters between parties
ranges                  what a vector must be before it is touched
pairing, masking        masked sums ......... with quantize: reals and counts in a ring
ckks, encrypted         encrypted sums ...... with slots: reals and counts in slots; rollcall: who is inside
"""
