"""The neutral core: what a schema, a plan, an encoding, a private release and a synthesizer are.

party rows → records → (charged, noisy) answers → sums → statistics → generator → records → synthetic rows → metrics

Both sides import it; it knows nothing of networks, keys or Kubernetes.
"""

from importlib.metadata import version

VERSION = version("fedsynth")
