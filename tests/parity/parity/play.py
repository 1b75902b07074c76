"""Plays a case's requests: through Envoy, and through nexthop over real or simulated HTTP.

A row is what one request came to: `at` (host and outcome of each attempt), `st`, `fl`, `det`, `n`, and what the answer
carried (`got`, `location`, gRPC's status and message)."""

import json
import socket
import time

import nexthop

from . import overlap
from .behaviour import Behaviour

PEER = "203.0.113.7"


def parts(case):
    """The script cut at its sleeps: lists of steps, and the seconds before each list but the first."""
    lists, sleeps = [[]], []
    for step in case["script"]:
        if step["do"] == "sleep":
            sleeps.append(step["s"])
            lists.append([])
        else:
            lists[-1].append(step)
    return lists, sleeps


def count(case):
    """Requests of a case."""
    return sum(len(step["each"]) for step in case["script"] if step["do"] == "requests")


class Closed(Exception):
    """The peer closed before it had answered."""


class Link:
    """One keep-alive connection."""

    def __init__(self, address, timeout=None):
        ip, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((ip, int(port)), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""

    def ask(self, head, timeout):
        self.socket.settimeout(timeout)
        try:
            self.socket.sendall(head)
            while b"\r\n\r\n" not in self.buffer:
                data = self.socket.recv(65536)
                if not data:
                    raise Closed
                self.buffer += data
        except (ConnectionResetError, BrokenPipeError):
            raise Closed from None
        head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        headers = []
        for line in lines[1:]:
            name, _, value = line.partition(":")
            headers.append((name.lower(), value.strip()))
        status = int(lines[0].split(" ")[1])
        length = int(dict(headers).get("content-length", "0"))
        while len(self.buffer) < length:
            data = self.socket.recv(65536)
            if not data:
                raise Closed
            self.buffer += data
        self.buffer = self.buffer[length:]
        return status, headers

    def close(self):
        self.socket.close()


def written(method, path, headers):
    lines = [f"{method} {path} HTTP/1.1"] + [f"{name}: {value}" for name, value in headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def lines_of(head):
    """Header lines of a head: one for each value."""
    for name, value in head.get("headers", {}).items():
        for one in value if isinstance(value, list) else [value]:
            yield name, one


def facts(row, headers):
    """What the answer carried, for the row."""
    for name, value in headers:
        if name == "x-got":
            row["got"] = value
        elif name in ("location", "grpc-status", "grpc-message"):
            row[name] = value


def details(text):
    """Response code details without the words of a socket's error."""
    return text.split("|")[0].rstrip("}")


def asked(case, head, number):
    """A request to Envoy as it is written."""
    source = head.get("source", PEER)
    forwarded = ("10.0.0.9" if head.get("internal") else source) if source else None
    headers = [("host", case["name"]), ("x-side", "envoy"), ("x-id", f"{case['name']}/{number}")]
    if forwarded:
        headers.append(("x-forwarded-for", forwarded))
    headers += lines_of(head)
    return written(head.get("method", "GET"), head.get("path", "/"), headers)


def through_envoy(case, envoy, steps, first, pause=0.0):
    """Plays steps of the script through Envoy: what its client saw. The rest of the rows is in the logs."""
    rows = []
    for step in steps:
        if step["do"] == "eds":
            envoy.endpoints(step["cluster"], step["endpoints"])
        elif step.get("stagger"):
            rows += overlapping(case, envoy.port, step, first + len(rows))
        else:
            rows += one_by_one(case, envoy.port, step, first + len(rows), pause)
    return rows


def one_by_one(case, port, step, first, pause):
    link, rows = None, []
    for i, head in enumerate(step["each"]):
        data = asked(case, head, first + i)
        for fresh in (False, True):
            if link is None:
                link = Link(f"127.0.0.1:{port}", 20)
            try:
                status, answer = link.ask(data, 20)
                break
            except Closed:
                link.close()
                link = None
                if fresh:
                    raise
        row = {"st": status}
        facts(row, answer)
        if ("connection", "close") in answer:
            link.close()
            link = None
        rows.append(row)
        if pause:
            time.sleep(pause)
    if link:
        link.close()
    return rows


def overlapping(case, port, step, first):
    """A request every `stagger` seconds, each on a connection of its own."""
    links = [Link(f"127.0.0.1:{port}", 20) for _ in step["each"]]
    start = time.monotonic()
    for i, head in enumerate(step["each"]):
        time.sleep(max(0.0, start + i * step["stagger"] - time.monotonic()))
        links[i].socket.sendall(asked(case, head, first + i))
    rows = []
    for link in links:
        status, answer = link.ask(b"", 20)
        row = {"st": status}
        facts(row, answer)
        rows.append(row)
        link.close()
    return rows


def logged(case, rows, requests, attempts):
    """Completes Envoy's rows from its logs."""
    for i, row in enumerate(rows):
        entry = requests.get(f"{case['name']}/{i}")
        if entry is None:
            raise RuntimeError(f"{case['name']}: request {i} is not in Envoy's log")
        row["st"], row["det"] = int(entry["st"]), details(entry.get("det") or "-")
        row["fl"] = sorted(flag for flag in (entry.get("fl") or "-").split(",") if flag != "-")
        row["n"] = int(entry.get("n") or 0)
        row["at"] = []
        for attempt in attempts.get(f"{case['name']}/{i}", []):
            flags, status = attempt.get("fl") or "-", int(attempt.get("st") or 0)
            outcome = str(status) if status else flags if flags not in ("-", "DC") else "cancelled"
            # What a limit refused was no attempt.
            if outcome != "UO":
                row["at"].append([attempt.get("host") or "-", outcome])


class Live:
    """Real HTTP to the scripted backends."""

    def __init__(self, engine, side="nexthop"):
        self.engine, self.side, self.links = engine, side, {}

    def send(self, attempt, method, path, headers, timeout):
        """The answer as `(status, headers)`, or the name of a failure."""
        address = attempt.host.address
        data = written(method, path, [("x-side", self.side), *headers])
        link = self.links.pop(address, None)
        try:
            # The backends never close an idle connection: an end always belongs to the request.
            link = link or Link(address, timeout)
            answer = link.ask(data, timeout)
            self.links[address] = link
            return answer
        except ConnectionRefusedError:
            return "connect_failure"
        except Closed:
            link.close()
            return "connection_termination"
        except TimeoutError:
            link.close()
            self.engine.advance(timeout)
            return "timeout"

    def close(self):
        for link in self.links.values():
            link.close()


class Simulated:
    """The same answers without sockets, on the manual clock."""

    def __init__(self, engine, case):
        self.engine, self.arrivals = engine, {}
        self.behaviours = {case["hosts"][name]: Behaviour(spec) for name, spec in case["behaviours"].items()}

    def send(self, attempt, _method, path, headers, timeout):
        address = attempt.host.address
        behaviour = self.behaviours[address]
        if behaviour.refuses:
            return "connect_failure"
        arrival = self.arrivals.get(address, 0)
        self.arrivals[address] = arrival + 1
        action = behaviour.at(arrival)
        if action.end == "hang" or timeout is not None and action.delay > timeout:
            self.engine.advance(timeout)
            return "timeout"
        if action.delay:
            self.engine.advance(action.delay)
        if action.end:
            return "connection_termination"
        headers = dict(headers)
        got = " ".join([path, headers.get("host", ""), headers.get("x-envoy-attempt-count", "")])
        return action.status, [("x-got", got), *action.headers]

    def close(self):
        pass


FAILED = {"connect_failure": "UF", "connection_termination": "UC"}


def request(engine, case, head):
    """A request of nexthop's."""
    source = head.get("source", PEER)
    options = {"source": f"{source}:40000"} if source else {}
    if head.get("internal"):
        options = {"internal": True, "source": "10.0.0.9:40000"}
    # As a parser gives them: blanks around a value are no part of it.
    own = [(name, value.strip(" \t")) for name, value in lines_of(head)]
    path, method = head.get("path", "/"), head.get("method", "GET")
    return engine.request(authority=case["name"], path=path, method=method, headers=own, **options)


def one(engine, case, head, transport):
    """One request through nexthop: its row."""
    row = {"at": [], "n": 0}
    method, path = head.get("method", "GET"), head.get("path", "/")
    call = request(engine, case, head)
    status, flags, answer = 0, "", []
    walk = Loop(engine, call)
    for attempt in walk:
        row["n"] = attempt.number
        extra = attempt.headers
        sent = {"host": extra.get(":authority") or case["name"]}
        sent.update((name, value) for name, value in extra.items() if value is not None and name[0] != ":")
        target = "/" + attempt.url().split("/", 3)[3]
        timeout, per_try = attempt.remaining, False
        if attempt.timeout is not None and (timeout is None or attempt.timeout < timeout):
            timeout, per_try = attempt.timeout, True
        reply = transport.send(attempt, method, target, sent.items(), timeout)
        if isinstance(reply, str):
            verdict = attempt.fail(reply)
            outcome = FAILED.get(reply) or ("UT" if per_try else "cancelled")
        else:
            status, answer = reply
            verdict = attempt.on_headers(status, answer)
            outcome = str(status)
            if verdict.action == "forward":
                attempt.end()
        row["at"].append([attempt.host.address, outcome])
        flags = verdict.flags
        if verdict.action == "forward":
            status = verdict.status
    reply = walk.refused.reply if walk.refused else call.reply
    if reply:
        status, flags, answer = reply.status, reply.flags, reply.headers.items()
    row["st"], row["det"] = status, details(reply.details) if reply else "via_upstream"
    row["fl"] = sorted(flag for flag in flags.split(",") if flag and flag != "-")
    facts(row, answer)
    call.close()
    return row


class Loop:
    """Waits of the manual clock: back-off passes by moving the clock."""

    def __init__(self, engine, call):
        self.engine, self.call, self.last, self.refused = engine, call, None, None

    def __iter__(self):
        while True:
            if self.last is not None and not (self.last.verdict and self.last.verdict.retry):
                return
            answer = self.call.try_choose_host()
            while isinstance(answer, nexthop.Wait):
                self.engine.advance(answer.seconds)
                answer = self.call.try_choose_host()
            if not isinstance(answer, nexthop.Attempt):
                self.refused = answer
                return
            self.last = answer
            yield answer


def documents(case):
    """What nexthop reads: the clusters, and the routes."""
    config = case["config"]
    table = {"name": "routes", "virtual_hosts": [{**config["virtual_host"], "domains": [case["name"]]}]}
    top = {**config.get("bootstrap", {}), "static_resources": {"clusters": config["clusters"]}}
    return json.dumps(top), json.dumps(table)


def assign(engine, cluster, endpoints):
    engine.apply_endpoints(cluster, json.dumps({"cluster_name": cluster, "endpoints": endpoints}))


def through_nexthop(case, seed, transport=None, until=None):
    """Rows, statistics, hosts and events of the whole script. `until` ends it early: it gets each row, says whether to
    go on."""
    engine = nexthop.Engine.from_str(*documents(case), seed=seed, workers=1, clock="manual")
    with engine:
        way = transport(engine) if transport else Simulated(engine, case)
        rows = []
        try:
            for cluster, endpoints in case["config"].get("eds_at_start", {}).items():
                assign(engine, cluster, endpoints)
            for step in case["script"]:
                if step["do"] == "sleep":
                    engine.advance(step["s"])
                    engine.maintain()
                elif step["do"] == "eds":
                    assign(engine, step["cluster"], step["endpoints"])
                elif step.get("stagger"):
                    for row in overlap.play_step(engine, case, step):
                        if until and not until(len(rows), row):
                            return None
                        rows.append(row)
                else:
                    for head in step["each"]:
                        row = one(engine, case, head, way)
                        engine.advance(0.0005)
                        if until and not until(len(rows), row):
                            return None
                        rows.append(row)
        finally:
            way.close()
        return rows, engine.stats(), engine.hosts(), engine.events()
