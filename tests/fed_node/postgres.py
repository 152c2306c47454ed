"""A real PostgreSQL for one test session, from the distribution's own package, on a socket of its own."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

INSTALL = (
    "PostgreSQL's server programs are not installed; on Debian: apt-get install --no-install-recommends postgresql"
)
PORT = 54329  # names the socket only; nothing listens on the network


@contextmanager
def postgres() -> Iterator[str]:
    """The SQLAlchemy URL of a fresh, empty server that is gone afterwards."""
    programs = _programs()
    # Not pytest's folder: that is closed to the user the server runs as, and too long a path for a socket.
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres", "postgres")
        data = folder / "data"
        _run(
            programs / "initdb",
            "--auth=scram-sha-256",
            "--username=reader",
            f"--pwfile={_password(folder)}",
            "-D",
            data,
        )
        settings = f"-k {folder} -p {PORT} -c listen_addresses='' -c fsync=off"
        _run(programs / "pg_ctl", "-D", data, "-l", folder / "log", "-o", settings, "-w", "start")
        try:
            yield f"postgresql+psycopg://reader:geheim@/postgres?host={folder}&port={PORT}"
        finally:
            _run(programs / "pg_ctl", "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder)


def _programs() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    if found:
        return found[-1]
    if on_path := shutil.which("initdb"):
        return Path(on_path).parent
    raise RuntimeError(INSTALL)


def _password(folder: Path) -> Path:
    path = folder / "password"
    path.write_text("geheim\n")
    if os.geteuid() == 0:
        shutil.chown(path, "postgres", "postgres")
    return path


def _run(program: Path, *arguments: str | Path) -> None:
    """The server refuses to run as root; its package brings a user for it."""
    user = pwd.getpwnam("postgres").pw_name if os.geteuid() == 0 else None
    done = subprocess.run(
        [program, *arguments],
        user=user,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        timeout=60,
    )
    if done.returncode:
        raise RuntimeError(f"{program.name} failed: {done.stderr.decode()}")
