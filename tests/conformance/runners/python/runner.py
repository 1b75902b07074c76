"""The player over the Python face: script on standard input, trace on standard output."""

import heapq
import json
import sys

import nexthop

def ns(seconds):
    return None if seconds is None else round(seconds * 1e9)


def dash(limit):
    return "-" if limit is None else str(limit)


def pairs(headers):
    kept = sorted(item for item in headers.items() if item[1] is not None and item[0] != "host" and item[0][0] != ":")
    return [word for item in kept for word in item]


class Call:
    def __init__(self, request, path, batch):
        self.request, self.path, self.batch = request, path, batch
        self.tries, self.asking, self.queued, self.done, self.refused = [], 0, False, False, False


class Try:
    def __init__(self, call, attempt, now):
        self.call, self.attempt, self.sent, self.last = call, attempt, now, now
        self.idle, self.open, self.answered = ns(attempt.idle_timeout), True, False
        self.hedges = attempt.hedge_after is not None


class Batch:
    def __init__(self, count, gap, clients):
        self.open, self.gap, self.clients, self.waiting = count, gap, clients, []


class Player:
    def __init__(self, out):
        self.out, self.engine = out, None
        self.reset()

    def reset(self):
        if self.engine is not None:
            self.engine.close()
        self.engine, self.now, self.sequence, self.connect = None, 0, 0, None
        self.docs, self.plans, self.plan, self.rules = [], {}, None, []
        self.calls, self.batches, self.heads, self.queue, self.events = [], [], [], [], []

    def say(self, *words):
        self.out.write(json.dumps(words, ensure_ascii=False, separators=(",", ":")) + "\n")

    def command(self, words):
        name, args = words[0], words[1:]
        if name == "case":
            self.reset()
            self.say("case", args[0])
            self.out.flush()
        elif name == "doc":
            self.docs.append(args[0])
        elif name == "open":
            draws = {"draws": [int(word) for word in args[1].split(",")]} if args[1] else {}
            docs, self.docs = self.docs, []
            try:
                self.engine = nexthop.Engine.from_str(
                    *docs, seed=int(args[0]), workers=1, clock="manual", **draws
                )
            except nexthop.ConfigError as error:
                print(error, file=sys.stderr)
            self.say("open", "ok" if self.engine else "refused")
        elif self.engine is None:
            return
        elif name == "plan":
            self.plan = self.plans[args[0]] = []
        elif name == "act":
            self.plan.append((int(args[0]), args[1:]))
        elif name == "drop":
            self.rules = [rule for rule in self.rules if rule["host"] != args[0]]
        elif name == "rule":
            self.rules.append(
                dict(host=args[0], attempt=int(args[1]), prefix=args[2], ending=args[3], plans=args[4:], used=0)
            )
        elif name == "connect":
            self.connect = int(args[0])
        elif name == "request":
            self.heads.append(args)
        elif name == "run":
            self.run(int(args[0]), int(args[1]), int(args[2]), args[3] == "wait")
        elif name == "sleep":
            until = self.now + int(args[0])
            while self.events and self.events[0][0] <= until:
                self.step()
            self.advance(until)
        elif name in ("endpoints", "update"):
            try:
                if name == "update":
                    docs, self.docs = self.docs, []
                    self.engine.update_str(*docs)
                else:
                    self.engine.apply_endpoints(args[0], args[1])
                self.say(name, "ok")
            except nexthop.ConfigError as error:
                print(error, file=sys.stderr)
                self.say(name, "refused")
            self.pump()
        elif name == "stats":
            for key, value in sorted(self.engine.stats().items()):
                if isinstance(value, (int, float)) and not isinstance(value, bool):
                    self.say("stat", args[0], key, str(value))
        elif name == "events":
            keys = ("cluster_name", "upstream_url", "action", "type", "num_ejections", "enforced")
            for event in self.engine.events():
                if "action" in event:
                    self.say("event", args[0], *(text(event.get(key, "")) for key in keys))
        else:
            raise ValueError(name)

    def at(self, time, kind, *what):
        self.sequence += 1
        heapq.heappush(self.events, (time, self.sequence, kind, what))

    def advance(self, time):
        if time > self.now:
            self.engine.advance((time - self.now) / 1e9)
            self.now = time

    def run(self, clients, gap, stagger, wait):
        heads, self.heads = self.heads, []
        batch = Batch(len(heads), gap, clients > 0)
        for i, words in enumerate(heads):
            call = Call(self.request(words), dict(zip(words[::2], words[1::2])).get("path", "/"), batch)
            call.index = str(len(self.calls))
            self.calls.append(call)
            batch.waiting.insert(0, call)
            if not clients:
                self.at(self.now + i * stagger, "begin", call)
        for _ in range(clients):
            self.next_of(batch, 0)
        while wait and batch.open and self.events:
            self.step()

    def request(self, words):
        head, headers = {}, []
        for key, value in zip(words[::2], words[1::2]):
            if key.startswith("h:"):
                headers.append((key[2:], value))
            elif key == "internal":
                head["internal"] = True
            elif key == "timeout":
                head["timeout"] = int(value) / 1e9
            elif key == "metadata":
                head["metadata"] = json.loads(value)
            else:
                head[key] = value
        return self.engine.request(headers=headers, **head)

    def next_of(self, batch, gap):
        if batch.clients and batch.waiting:
            self.at(self.now + gap, "begin", batch.waiting.pop())

    def step(self):
        time, _, kind, (on, *rest) = heapq.heappop(self.events)
        if kind == "connected" and not on.queued or kind == "ask" and (on.done or on.asking != rest[0]):
            return
        if kind in ("act", "limit", "idle") and not on.open:
            return
        self.advance(time)
        if kind in ("begin", "ask"):
            self.ask(on)
        elif kind == "connected":
            on.request.note("connected")
        elif kind == "act":
            on.last = self.now
            self.act(on, rest[0])
            if on.open and on.idle is not None:
                self.at(self.now + on.idle, "idle", on)
        elif kind == "limit":
            if rest[0] or not on.answered:
                self.act(on, ["fail", "timeout"])
        elif (on.answered or not on.hedges) and self.now - on.last >= on.idle:  # who hedges gives none up before its headers
            self.act(on, ["fail", "per_try_idle_timeout"])
        self.pump()

    def pump(self):
        for call in list(self.queue):
            if call.queued:
                self.ask(call)

    def unqueue(self, call):
        if call.queued:
            call.queued = False
            self.queue.remove(call)

    def ask(self, call):
        call.asking += 1
        now = str(self.now)
        try:
            answer = call.request.try_choose_host()
        except nexthop.UsageError:
            self.say("misuse", call.index, now)
            return self.done(call)
        if isinstance(answer, nexthop.Attempt):
            self.unqueue(call)
            limits = [ns(t) for t in (answer.timeout, answer.remaining, answer.idle_timeout, answer.hedge_after)]
            self.say("go", call.index, str(answer.number), answer.host.address, answer.host.cluster, now,
                     *map(dash, limits), *pairs(answer.headers))
            self.send(call, answer, limits)
        elif isinstance(answer, nexthop.Wait):
            span, queue = ns(answer.seconds), answer.reason == "queue"
            if not queue:
                self.unqueue(call)
            if not call.queued:
                self.say("wait", call.index, answer.reason, "-" if queue else dash(span), now)
            if queue and not call.queued:
                call.queued = True
                self.queue.append(call)
                if self.connect is not None:
                    self.at(self.now + self.connect, "connected", call)
            if span is not None:
                self.at(self.now + span, "ask", call, call.asking)
        else:
            self.unqueue(call)
            call.refused = True
            self.say("refused", call.index, answer.refusal, answer.resource or "", now, *local(answer.reply))
            self.done(call)

    def send(self, call, attempt, limits):
        on = Try(call, attempt, self.now)
        call.tries.append(on)
        timeout, remaining, idle, hedge = limits
        if timeout is not None:
            self.at(self.now + timeout, "limit", on, False)
        if remaining is not None:
            self.at(self.now + remaining, "limit", on, True)
        if idle is not None:
            self.at(self.now + idle, "idle", on)
        if hedge is not None:
            self.at(self.now + hedge, "ask", call, call.asking)
        for rule in self.rules:
            if (rule["host"] in ("", attempt.host.address) and rule["attempt"] in (0, attempt.number)
                    and call.path.startswith(rule["prefix"])):
                count, time = len(rule["plans"]), self.now
                turn = rule["used"] % count if rule["ending"] == "cycle" else min(rule["used"], count - 1)
                rule["used"] += 1
                for after, words in self.plans[rule["plans"][turn]]:
                    time += after
                    self.at(time, "act", on, words)
                return

    def act(self, on, words):
        call, attempt, (kind, *args) = on.call, on.attempt, words
        now, number = str(self.now), str(attempt.number)
        try:
            if kind in ("headers", "complete"):
                report = attempt.complete if kind == "complete" else attempt.on_headers
                more = {"grpc_status": int(args[1])} if args[1] else {}
                verdict = report(int(args[0]), list(zip(args[2::2], args[3::2])), **more)
                word = args[0] + ("+" if kind == "headers" else "")
            elif kind == "fail":
                verdict, word = attempt.fail(args[0]), args[0]
            elif kind == "end":
                more = {"grpc_status": int(args[0])} if args[0] else {}
                attempt.end(trailers=list(zip(args[1::2], args[2::2])), **more)
                on.open = False
                self.say("end", call.index, number, now)
                return self.done(call)
            elif kind == "note":
                return attempt.note(args[0])
            else:
                call.request.close()
                self.say("gone", call.index, now)
                return self.done(call)
        except nexthop.UsageError:
            self.say("misuse", call.index, now)
            return self.done(call)
        self.say("verdict", call.index, number, word, verdict.action, verdict.reason, str(round(verdict.after * 1e3)),
                 str(verdict.status), verdict.flags, now, str(self.now - on.sent))
        if verdict.action == "forward" and kind == "headers" and not on.answered:
            on.answered = True
            for other in call.tries:
                other.open = other is on
            return
        on.open = False
        if verdict.action == "retry":
            self.ask(call)
        elif verdict.action != "discard":
            self.done(call)

    def done(self, call):
        reply = None if call.refused else call.request.reply
        if reply:
            self.say("reply", call.index, *local(reply))
        self.say("done", call.index, str(self.now), *pairs(call.request.response_headers()))
        self.unqueue(call)
        call.done = True
        for on in call.tries:
            on.open = False
        call.batch.open -= 1
        self.next_of(call.batch, call.batch.gap)


def text(value):
    return str(value).lower() if isinstance(value, bool) else str(value)


def local(reply):
    return [str(reply.status), reply.flags, reply.details, reply.body, *pairs(reply.headers)]


with open(1, "w", encoding="utf-8", closefd=False) as out:
    player = Player(out)
    for line in open(0, encoding="utf-8", closefd=False):
        player.command(json.loads(line))
