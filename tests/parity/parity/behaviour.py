"""What a backend does with a request, by the words of `tests/vectors/envoy-live/README.md`.

The scripted server and the simulated transport share this file, so they cannot differ."""


class Action:
    """One answer: after `delay` seconds a status with headers, or `end` (`reset`, `hang`, `refuse`)."""

    __slots__ = ("delay", "status", "headers", "end")

    def __init__(self, words):
        self.delay, self.status, self.headers, self.end = 0.0, 200, [], None
        for word in [words] if isinstance(words, str) else words:
            name, _, rest = word.partition(" ")
            if name == "status":
                self.status = int(rest)
            elif name == "delay":
                self.delay = float(rest.removesuffix("s"))
            elif name == "header":
                key, _, value = rest.partition("=")
                self.headers.append((key, value))
            elif name in ("reset", "hang", "refuse"):
                self.end = name
            elif name != "ok":
                raise ValueError(f"unknown behaviour {word!r}")


class Behaviour:
    """The actions of one host: the k-th request takes the k-th, then the last one for ever or from the front."""

    def __init__(self, spec):
        cycle = False
        if isinstance(spec, dict):
            cycle = spec.get("end") == "cycle"
            spec = spec["seq"]
        elif isinstance(spec, str):
            spec = [spec]
        self.actions, self.cycle = [Action(words) for words in spec], cycle

    @property
    def refuses(self):
        return self.actions[0].end == "refuse"

    def at(self, arrival):
        count = len(self.actions)
        return self.actions[arrival % count if self.cycle else min(arrival, count - 1)]
