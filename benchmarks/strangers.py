"""Strangers who knock at the aggregator's public door, thousands of them at once, each in its own way and for ever.

    python -m benchmarks.strangers PORT CA COUNT SEED

One in five: begins a handshake and says nothing; sends a header byte by byte; sends a body byte by byte; posts 6 MB;
shakes hands, asks for /health and leaves. Half of them have an address of their own (127.0.0.0/8), the others share
twenty. Ends at SIGTERM and prints how many came, how many were there at once and how often they knocked.
They run at low priority: elsewhere they would have processors of their own.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import resource
import signal
import ssl
import sys
from collections import Counter
from pathlib import Path

SHARED_ADDRESSES = 20
SHORT_PAUSE_SECONDS, LONG_PAUSE_SECONDS = (0.0, 2.0), (10.0, 30.0)  # between two knocks: of the slow, of the others
PATIENCE_SECONDS = 60.0
POST = "POST /v1/fleet/push-object HTTP/1.1\r\nHost: localhost\r\nflwr-public-key: nobody\r\nContent-Length: {}\r\n\r\n"
LARGE = 6_000_000
KINDS = ("silent", "slow header", "slow body", "large post", "visit")


class Crowd:
    """All strangers of one process."""

    def __init__(self, port: int, authority: Path, count: int, seed: int) -> None:
        self.port, self.count, self.luck = port, count, random.Random(seed)
        self.context = ssl.create_default_context(cafile=str(authority))
        self.knocks: Counter[str] = Counter()
        self.arrived: set[int] = set()
        self.present: set[int] = set()  # with a connection at this moment
        self.most = 0

    async def stranger(self, number: int) -> None:
        ways = [self.silent, self.slow_header, self.slow_body, self.large_post, self.visit]
        way = ways[number % len(ways)]
        pause = LONG_PAUSE_SECONDS if way in (self.large_post, self.visit) else SHORT_PAUSE_SECONDS
        await asyncio.sleep(self.luck.uniform(0, 10))
        while True:
            try:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    await way(number)
            except (OSError, EOFError, TimeoutError):
                pass
            self.present.discard(number)
            await asyncio.sleep(self.luck.uniform(*pause))

    async def open(self, number: int, tls: bool) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        place = number if number % 2 else 10 * (number % SHARED_ADDRESSES)
        address = f"127.{1 + number % 2}.{place // 250}.{1 + place % 250}"
        names = {"ssl": self.context, "server_hostname": "localhost"} if tls else {}
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, local_addr=(address, 0), **names)  # type: ignore[arg-type]
        self.arrived.add(number)
        self.knocks[KINDS[number % len(KINDS)]] += 1
        self.present.add(number)
        self.most = max(self.most, len(self.present))
        return reader, writer

    async def silent(self, number: int) -> None:
        reader, writer = await self.open(number, tls=False)
        writer.write(b"\x16\x03\x01")  # the first bytes of a ClientHello
        await self._until_closed(reader, writer)

    async def slow_header(self, number: int) -> None:
        reader, writer = await self.open(number, tls=True)
        await self._drip(POST.format(LARGE).encode()[:-2], reader, writer)

    async def slow_body(self, number: int) -> None:
        reader, writer = await self.open(number, tls=True)
        writer.write(POST.format(LARGE).encode())
        await self._drip(b"x" * 60, reader, writer)

    async def large_post(self, number: int) -> None:
        reader, writer = await self.open(number, tls=True)
        writer.write(POST.format(LARGE).encode())
        for _ in range(LARGE // 60_000):
            writer.write(b"x" * 60_000)
            await writer.drain()
            await asyncio.sleep(0.02)
        await self._until_closed(reader, writer)

    async def visit(self, number: int) -> None:
        reader, writer = await self.open(number, tls=True)
        writer.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        await self._until_closed(reader, writer)

    async def _drip(self, content: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for byte in content:
            if reader.at_eof() or reader.exception() is not None:
                break
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(1.0)
        await self._until_closed(reader, writer)

    async def _until_closed(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.read()
        finally:
            writer.transport.abort()

    async def knock(self) -> None:
        told_to_end = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told_to_end.set)
        tasks = [asyncio.create_task(self.stranger(number)) for number in range(self.count)]
        await told_to_end.wait()
        for task in tasks:
            task.cancel()


def main() -> None:
    port, authority, count, seed = sys.argv[1:5]
    os.nice(10)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 65536), most))
    crowd = Crowd(int(port), Path(authority), int(count), int(seed))
    asyncio.run(crowd.knock())
    print(
        json.dumps({"strangers": len(crowd.arrived), "at_once": crowd.most, "knocks": dict(crowd.knocks)}), flush=True
    )


if __name__ == "__main__":
    main()
