"""Compares what came of a case on both sides. Each disagreement is one line."""

from collections import Counter

from . import figures, play

# Family-wise rate of false alarms of one run, over all its statistical tests together (Bonferroni).
FALSE_ALARMS = 1e-3
# Random starts that are tried before a run counts as one that nexthop cannot give.
STARTS = 1500
# Requests that nexthop gets for each of Envoy's in statistical cases.
MORE = 10

# Counters of connections depend on when a proxy opens and closes them.
FAMILIES = ("upstream_rq_", "retry.", "retry_", "lb_", "outlier_detection.", "membership_")
NOT_COMPARED = {
    "upstream_rq_pending_total",
    "upstream_rq_pending_active",
    "upstream_rq_active",
    # The prober of admission and the histograms are no counters.
    "upstream_rq_time",
}


def compared(name):
    if name == "upstream_cx_connect_fail":
        return True
    return name.startswith(FAMILIES) and name not in NOT_COMPARED


def counters(case, stats):
    """The case's counters that are not 0."""
    found = {}
    for cluster in case["config"]["clusters"]:
        prefix = f"cluster.{cluster['name']}."
        for name, value in stats.items():
            if name.startswith(prefix) and isinstance(value, (int, float)) and value:
                if compared(name.removeprefix(prefix)):
                    found[name.removeprefix("cluster.")] = value
    return found


def differences(label, wanted, got):
    """Keys of two mappings whose values differ."""
    keys = sorted(set(wanted) | set(got))
    return [
        f"{label} {key}: Envoy {wanted.get(key, 0)}, nexthop {got.get(key, 0)}"
        for key in keys
        if wanted.get(key, 0) != got.get(key, 0)
    ]


def ejections(events):
    """Ejections by host, in order. Between hosts the order is no fact; the log says nothing of an un-ejection."""
    found = {}
    for event in events:
        if event.get("action") == "EJECT":
            words = (event.get("type"), event.get("num_ejections", 0), bool(event.get("enforced")))
            found.setdefault(event["upstream_url"], []).append(words)
    return found


def flags(hosts):
    """Which of the case's hosts are ejected."""
    return {address: True for address, ejected in hosts.items() if ejected}


def row_differs(wanted, got):
    """What of a row differs, or `None`."""
    for key in ("at", "st", "fl", "det", "got", "location", "grpc-status", "grpc-message"):
        if wanted.get(key) != got.get(key):
            return f"{key}: Envoy {wanted.get(key)}, nexthop {got.get(key)}"
    if wanted["at"] and wanted["det"] == "via_upstream" and wanted["n"] != got["n"]:
        return f"attempts: Envoy {wanted['n']}, nexthop {got['n']}"
    return None


class Envoys:
    """What Envoy did with a case."""

    def __init__(self, rows, stats, hosts, events):
        self.rows, self.stats, self.hosts, self.events = rows, stats, hosts, events


def find_start(envoys, case):
    """The seed whose simulated run is Envoy's, else `None` with the longest beginning that any seed gave."""
    best, why = -1, "no request"
    for seed in range(1, STARTS + 1):
        reached = 0

        def go_on(i, row):
            nonlocal reached, best, why
            wrong = row_differs(envoys.rows[i], row)
            if wrong and i > best:
                best, why = i, f"request {i}: {wrong}"
            reached = i
            return not wrong

        if play.through_nexthop(case, seed, until=go_on) is not None:
            return seed, None
        if case["determinism"]["class"] == "exact":
            break
    return None, why


def judge(envoys, case, tests):
    """Every disagreement of a case; `tests` collects the p-values of statistical ones for the family's decision."""
    if case["determinism"]["class"] == "statistical":
        return shares(envoys, case, tests)
    seed, why = find_start(envoys, case)
    if seed is None:
        return [f"no start gives Envoy's run; the nearest fails at {why}"]
    rows, stats, hosts, events = play.through_nexthop(case, seed, play.Live)
    found = []
    for i, (wanted, got) in enumerate(zip(envoys.rows, rows)):
        wrong = row_differs(wanted, got)
        if wrong:
            found.append(f"request {i}: {wrong}")
    found += differences("counter", counters(case, envoys.stats), counters(case, stats))
    found += differences("ejections of", ejections(envoys.events), ejections(events))
    wanted = {at: bool(host["health_status"].get("failed_outlier_check")) for at, host in envoys.hosts.items()}
    got = {host["address"]: "failed_outlier" in host["health_flags"] for host in hosts}
    found += differences("ejected", flags(wanted), flags(got))
    return found


def first_hosts(rows):
    return Counter(row["at"][0][0] if row["at"] else "-".join(["none", *row["fl"]]) for row in rows)


def shares(envoys, case, tests):
    rows = []
    for seed in range(1, MORE + 1):
        rows += play.through_nexthop(case, seed)[0]
    live = play.through_nexthop(case, MORE + 1, play.Live)[0]
    wanted, got = first_hosts(envoys.rows), first_hosts(rows)
    value, count = figures.same_shares(wanted, got)
    tests.append((value, count, case, f"shares: Envoy {dict(wanted)}, nexthop {dict(got)} (p = {value:.2g})"))
    found = []
    statuses = Counter(row["st"] for row in envoys.rows), Counter(row["st"] for row in live)
    if set(statuses[0]) != set(statuses[1]):
        found.append(f"statuses: Envoy {dict(statuses[0])}, nexthop {dict(statuses[1])}")
    return found


def alarms(tests):
    """Statistical cases whose p-value is below the family's limit."""
    total = sum(count for _, count, _, _ in tests)
    return [(case, text) for value, _, case, text in tests if value * total < FALSE_ALARMS]
