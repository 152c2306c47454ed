"""The neutral core: what a schema, a plan, an encoding, a private release and a synthesizer are.

party rows → records → (charged, noisy) answers → sums → statistics → generator → records → synthetic rows → metrics

Both sides import it; it knows nothing of networks, keys or Kubernetes.
"""

VERSION = "0.2.0"  # signed by parties: a version that counts other things for the same plan has another
