"""The worker gives up the network before it takes a message, since it has the rows and needs nothing from there.

A pod has one network for all its containers, and the SuperNode beside the worker needs it. So the kernel is told, for
this process and for good, to refuse every new socket but Unix ones. That is a seccomp filter, which any process may
put on itself once it can gain no more privileges; a network namespace of its own would need a right that the runtime's
default profile withholds. A socket that listens already (the party's metrics) goes on. Where the rows are in a
database the worker needs the network, and says so.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import socket
import struct
import sys
from dataclasses import dataclass

PR_SET_NO_NEW_PRIVS = 38
SECCOMP_SET_MODE_FILTER, ALL_THREADS = 1, 1
LOAD, IS, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06  # of the classic BPF machine
NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16  # offsets into seccomp_data
ALLOW, REFUSE, KILL = 0x7FFF0000, 0x00050000 | errno.EACCES, 0x80000000
FOREIGN_NUMBERS = 0x40000000  # of x86's third way to call the kernel


@dataclass(frozen=True)
class _Machine:
    audit: int  # how the kernel names the architecture
    seccomp: int  # numbers of system calls
    socket: int
    io_uring_setup: int = 425  # which could make sockets, too


MACHINES = {
    "x86_64": _Machine(audit=0xC000003E, seccomp=317, socket=41),
    "aarch64": _Machine(audit=0xC00000B7, seccomp=277, socket=198),
}


def give_up_network() -> str | None:
    """From now on no thread of this process can make a socket but Unix ones. None: done; else why it is not."""
    machine = MACHINES.get(platform.machine())
    if sys.platform != "linux" or machine is None:
        return f"not possible on {sys.platform} {platform.machine()}"
    libc = ctypes.CDLL(None, use_errno=True)
    program = _filter(machine)
    content = ctypes.create_string_buffer(program, len(program))
    described = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(content))
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.syscall(
        machine.seccomp, SECCOMP_SET_MODE_FILTER, ALL_THREADS, ctypes.create_string_buffer(described, len(described))
    ):
        return f"the kernel refuses a filter ({errno.errorcode.get(ctypes.get_errno(), 'unknown')})"
    return None if _is_cut_off() else "the kernel took the filter and does not keep it"


def _is_cut_off() -> bool:
    try:
        socket.socket(socket.AF_INET).close()
    except PermissionError:
        return True
    return False


def _filter(machine: _Machine) -> bytes:
    """Instructions of eight bytes: code, steps to skip if true, if false, and a constant."""
    return b"".join(
        struct.pack("HBBI", *instruction)
        for instruction in (
            (LOAD, 0, 0, ARCHITECTURE),
            (IS, 1, 0, machine.audit),
            (RETURN, 0, 0, KILL),
            (LOAD, 0, 0, NUMBER),
            (AT_LEAST, 5, 0, FOREIGN_NUMBERS),
            (IS, 4, 0, machine.io_uring_setup),
            (IS, 0, 2, machine.socket),
            (LOAD, 0, 0, FIRST_ARGUMENT),
            (IS, 0, 1, int(socket.AF_UNIX)),
            (RETURN, 0, 0, ALLOW),
            (RETURN, 0, 0, REFUSE),
        )
    )
