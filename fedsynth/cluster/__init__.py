"""The operator's hands in a Kubernetes cluster: releases, jobs, pods. The only importer of kubernetes and pyhelm3."""
