"""What can go wrong between the command line and a cluster.

FedsynthError
└── ClusterError           the cluster, or what runs in it; exit code 8
    ├── Unreachable        no API server answers
    ├── Forbidden          it answers, and says no
    ├── NotInstalled       the release, its pod or its job is not there
    └── Stuck              a pod cannot start, and would not by waiting
"""

from __future__ import annotations

from synth.errors import FedsynthError


class ClusterError(FedsynthError):
    code = "cluster"
    exit_code = 8


class Unreachable(ClusterError):
    code = "cluster-unreachable"


class Forbidden(ClusterError):
    code = "cluster-forbidden"


class NotInstalled(ClusterError):
    code = "not-installed"


class Stuck(ClusterError):
    code = "pod-stuck"
