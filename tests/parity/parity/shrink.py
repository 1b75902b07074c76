"""Makes a disagreeing case smaller while it still disagrees."""

import copy

TRIES = 24


def without(case):
    """Smaller cases, the boldest first."""
    steps = case["script"]
    for i, step in enumerate(steps):
        if step["do"] != "requests":
            continue
        each = step["each"]
        for keep in (each[: len(each) // 2], each[: len(each) - 1], each[1:]):
            if keep and len(keep) < len(each):
                small = copy.deepcopy(case)
                small["script"][i]["each"] = keep
                yield small
    routes = case["config"]["virtual_host"]["routes"]
    for i in range(len(routes)):
        if len(routes) > 1:
            small = copy.deepcopy(case)
            del small["config"]["virtual_host"]["routes"][i]
            yield small
    for c, cluster in enumerate(case["config"]["clusters"]):
        for key in ("outlier_detection", "common_lb_config", "ring_hash_lb_config", "least_request_lb_config"):
            for field in cluster.get(key, {}):
                small = copy.deepcopy(case)
                del small["config"]["clusters"][c][key][field]
                yield small
        for at, locality in enumerate(cluster.get("load_assignment", {}).get("endpoints", [])):
            for e in range(len(locality.get("lb_endpoints", []))):
                small = copy.deepcopy(case)
                del small["config"]["clusters"][c]["load_assignment"]["endpoints"][at]["lb_endpoints"][e]
                yield small


def disagrees(bench, case):
    try:
        ((_, found),) = bench.play([case], [], 0.01)
    except RuntimeError:
        return False
    return bool(found)


def smallest(bench, case):
    """The smallest disagreeing case found within the tries; a statistical one stays as it is."""
    if case["determinism"]["class"] == "statistical":
        return case
    tries, shrunk = TRIES, True
    while shrunk and tries:
        shrunk = False
        for small in without(case):
            if not tries:
                break
            tries -= 1
            if disagrees(bench, small):
                case, shrunk = small, True
                break
    return case
