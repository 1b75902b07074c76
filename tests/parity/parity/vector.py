"""Writes what Envoy did with a case as a vector, in the form of `tests/vectors/envoy-live/README.md`."""

import json

from . import judge

DEFAULTS = {"st": 200, "fl": "-", "det": "via_upstream"}


def vector(case, envoys):
    """The case with Envoy's result."""
    names = {address: name for name, address in case["hosts"].items()}
    clusters = [cluster["name"] for cluster in case["config"]["clusters"]]
    phases, number = [], 0
    for step in case["script"]:
        if step["do"] != "requests":
            continue
        rows = []
        for head in step["each"]:
            seen = envoys.rows[number]
            row = {"i": number, "in": {"path": head.get("path", "/")}}
            if head.get("headers"):
                row["in"]["h"] = [[name, value] for name, value in head["headers"].items()]
            row["at"] = [f"{names.get(host, '-')} {outcome}" for host, outcome in seen["at"]]
            if seen["n"] != len(row["at"]):
                row["n"] = seen["n"]
            row.update(st=seen["st"], fl=",".join(seen["fl"]) or "-", det=seen["det"])
            if row["det"].startswith("upstream_reset_before_response_started"):
                row["det"] += "}"
            rows.append({key: value for key, value in row.items() if DEFAULTS.get(key) != value})
            number += 1
        phases.append({"step": step["label"], "n": len(rows), "rows": rows})
    stats = judge.counters(case, envoys.stats)
    if len(clusters) == 1:
        stats = {name.removeprefix(f"{clusters[0]}."): value for name, value in stats.items()}
    events = [
        {"host": names.get(event["upstream_url"], "-"), **{key: event[key] for key in ("action", "type", "num_ejections", "enforced")}}
        for event in envoys.events
        if event.get("action") == "EJECT"
    ]
    config = {key: value for key, value in case["config"].items() if value}
    result = {"phases": phases, "stats": stats, **({"outlier_events": events} if events else {})}
    return {**case, "envoy": "1.40.0", "config": config, "result": result}


def text(made):
    """The vector as JSON."""
    return json.dumps(made, indent=1) + "\n"
