"""Requests of nexthop that overlap: events by time, on the manual clock, against backends that hold their answers."""

import heapq

import nexthop

from . import play
from .behaviour import Behaviour


class Player:
    def __init__(self, engine, case):
        self.engine, self.case, self.now, self.count, self.events = engine, case, 0.0, 0, []
        self.waiting = []
        self.arrivals = {}
        self.behaviours = {case["hosts"][name]: Behaviour(spec) for name, spec in case["behaviours"].items()}

    def at(self, time, act, *what):
        self.count += 1
        heapq.heappush(self.events, (time, self.count, act, what))

    def run(self):
        while self.events:
            time, _, act, what = heapq.heappop(self.events)
            if time > self.now:
                self.engine.advance(time - self.now)
                self.now = time
            act(*what)
            # A permit that was freed is taken up before the next event.
            for call, row in list(self.waiting):
                self.ask(call, row)

    def begin(self, head, row):
        self.ask(play.request(self.engine, self.case, head), row)

    def ask(self, call, row):
        answer = call.try_choose_host()
        queued = isinstance(answer, nexthop.Wait) and answer.reason == "queue"
        if ((call, row) in self.waiting) != queued:
            self.waiting.append((call, row)) if queued else self.waiting.remove((call, row))
        if queued:
            return
        if isinstance(answer, nexthop.Wait):
            self.at(self.now + answer.seconds, self.ask, call, row)
        elif isinstance(answer, nexthop.Attempt):
            row["n"] = answer.number
            address = answer.host.address
            action = self.behaviours[address].at(self.arrivals.get(address, 0))
            self.arrivals[address] = self.arrivals.get(address, 0) + 1
            self.at(self.now + action.delay, self.answered, call, row, answer, action)
        else:
            self.finish(call, row, answer.reply, 0, "")

    def answered(self, call, row, attempt, action):
        row["at"].append([attempt.host.address, str(action.status)])
        verdict = attempt.on_headers(action.status, action.headers)
        if verdict.retry:
            self.ask(call, row)
            return
        attempt.end()
        self.finish(call, row, None, verdict.status, verdict.flags)
        path, name = attempt.url().split("/", 3)[3], self.case["name"]
        row["got"] = f"/{path} {name} {attempt.headers.get('x-envoy-attempt-count', '')}"

    def finish(self, call, row, reply, status, flags):
        if reply:
            status, flags = reply.status, reply.flags
        row["st"], row["det"] = status, play.details(reply.details) if reply else "via_upstream"
        row["fl"] = sorted(flag for flag in flags.split(",") if flag and flag != "-")
        call.close()


def play_step(engine, case, step):
    player, rows = Player(engine, case), []
    for i, head in enumerate(step["each"]):
        row = {"at": [], "n": 0}
        rows.append(row)
        player.at(i * step["stagger"], player.begin, head, row)
    player.run()
    return rows
