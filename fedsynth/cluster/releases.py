"""Helm, through pyhelm3: install, upgrade, uninstall."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from pyhelm3 import Client
from pyhelm3 import errors as helm_errors

from fedsynth.cluster.errors import ClusterError, NotInstalled, Unreachable

T = TypeVar("T")
logging.getLogger("pyhelm3").setLevel(logging.ERROR)  # it warns of what we tell in our own words


class Releases:
    """The releases of one namespace."""

    def __init__(self, namespace: str, context: str | None = None) -> None:
        self.namespace = namespace
        self.client = Client(kubecontext=context)

    def install(self, release: str, chart: Path, values: list[dict[str, Any]], wait_seconds: int) -> int:
        """Install or upgrade, and wait until it is ready; the revision."""

        async def install() -> int:
            found = await self.client.get_chart(chart)
            revision = await self.client.install_or_upgrade_release(
                release, found, *values, namespace=self.namespace, timeout=f"{wait_seconds}s", wait=True
            )
            return int(revision.revision)

        return _told(f"install {release} from {chart}", install())

    def values(self, release: str) -> dict[str, Any]:
        """What the installed release was made with; {} if there is none."""

        async def values() -> dict[str, Any]:
            revision = await self.client.get_current_revision(release, namespace=self.namespace)
            return dict(await revision.values() or {})

        try:
            return _told(f"read the values of {release}", values())
        except NotInstalled:
            return {}

    def uninstall(self, release: str) -> None:
        async def uninstall() -> None:
            await self.client.uninstall_release(release, namespace=self.namespace, wait=True)

        _told(f"uninstall {release}", uninstall())


def _told(what: str, work: Coroutine[Any, Any, T]) -> T:
    try:
        return asyncio.run(work)
    except helm_errors.ReleaseNotFoundError:
        raise NotInstalled(f"cannot {what}: there is no such release; check --namespace and --release") from None
    except helm_errors.ConnectionError:
        raise Unreachable(f"cannot {what}: no cluster answers; check KUBECONFIG and --context") from None
    except helm_errors.CommandCancelledError:
        raise ClusterError(f"cannot {what}: helm was interrupted; run the command again") from None
    except helm_errors.Error as error:
        lines = list(dict.fromkeys(line.removeprefix("Error: ") for line in str(error).splitlines() if line.strip()))
        text = " ".join(lines)
        raise ClusterError(f"cannot {what}: {text}") from None
    except FileNotFoundError:
        raise ClusterError(f"cannot {what}: helm is not on PATH; install Helm 3.8 or newer") from None
