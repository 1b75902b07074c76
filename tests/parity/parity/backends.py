"""Scripted HTTP/1.1 backends on loopback, many in one process.

Commands come as JSON lines on standard input: `{"listen": {ip: behaviour}}`, `{"close": true}`; each is answered by one
line. Arrivals are counted by host and by the request's `x-side`, so that both sides meet the same script."""

import asyncio
import json
import sys

from .behaviour import Behaviour

HOSTS = {}
COUNTS = {}
OPEN = set()


class Server(asyncio.Protocol):
    def __init__(self, ip):
        self.ip, self.buffer = ip, b""

    def connection_made(self, transport):
        self.transport = transport
        OPEN.add(transport)

    def connection_lost(self, _error):
        OPEN.discard(self.transport)

    def data_received(self, data):
        self.buffer += data
        while b"\r\n\r\n" in self.buffer:
            head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
            lines = head.decode("latin-1").split("\r\n")
            headers = {}
            for line in lines[1:]:
                name, _, value = line.partition(":")
                headers[name.lower()] = value.strip()
            self.answer(lines[0].split(" ")[1], headers)

    def answer(self, path, headers):
        key = (headers.get("x-side", ""), self.ip)
        arrival = COUNTS.get(key, 0)
        COUNTS[key] = arrival + 1
        action = HOSTS[self.ip].at(arrival)
        if action.delay:
            asyncio.get_running_loop().call_later(action.delay, self.act, action, path, headers)
        else:
            self.act(action, path, headers)

    def act(self, action, path, headers):
        if action.end == "hang" or self.transport.is_closing():
            return
        if action.end:
            self.transport.close()
            return
        # A rewrite may leave a path without its slash; a URL, which nexthop makes of it, has one.
        path = path if path.startswith("/") else "/" + path
        got = [path, headers.get("host", ""), headers.get("x-envoy-attempt-count", "")]
        lines = [f"HTTP/1.1 {action.status} -", "content-length: 0", "x-got: " + " ".join(got)]
        lines += [f"{name}: {value}" for name, value in action.headers]
        self.transport.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))


async def main(port):
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=1 << 24)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    servers = []
    while line := await reader.readline():
        command = json.loads(line)
        if command.get("close"):
            for server in servers:
                server.close()
            for transport in list(OPEN):
                transport.abort()
            servers.clear()
            HOSTS.clear()
            COUNTS.clear()
        for ip, spec in command.get("listen", {}).items():
            HOSTS[ip] = Behaviour(spec)
            if not HOSTS[ip].refuses:
                servers.append(await loop.create_server(lambda ip=ip: Server(ip), ip, port, backlog=64))
        sys.stdout.write("ok\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
