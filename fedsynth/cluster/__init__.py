"""The operator's hands in a Kubernetes cluster: releases, jobs, pods. The only importer of kubernetes and pyhelm3."""

from importlib.util import find_spec

from synth.errors import InputError

if find_spec("kubernetes") is None or find_spec("pyhelm3") is None:
    raise InputError("the images hold no client of Kubernetes; give operator commands where the package is installed.")
