"""The AI gateway of the examples: three stand-ins for providers, on loopback."""

from __future__ import annotations

import importlib.util
import pathlib

GATEWAY = pathlib.Path(__file__).parents[2] / "examples" / "ai-gateway" / "ai_gateway.py"
LIMITED = "preferred: 429 rate_limit_exceeded"
LATE = "backup: no token in time"


def test_who_answers_and_why():
    spec = importlib.util.spec_from_file_location("ai_gateway", GATEWAY)
    gateway = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(gateway)
    rows, seen, stats = gateway.demo()
    assert [(row.prompt, row.status, row.tokens, row.whole, row.way) for row in rows] == [
        ("one", 200, 5, True, "preferred: 200"),
        ("two", 200, 5, True, "preferred: 200"),
        ("three, long", 200, 5, True, f"{LIMITED} -> {LATE} -> cheap: 200"),
        ("four", 200, 5, True, "backup: 200"),
        ("preferred or none", 503, 0, True, "cooling"),
        ("five, long", 200, 5, True, f"{LATE} -> cheap: 200"),
        ("six, long: break", 200, 2, False, f"{LATE} -> cheap: 200"),
        ("seven", 200, 5, True, "preferred: 200"),
    ]
    assert rows[4].retry_after in ("3", "4")
    assert seen["preferred"] == ["one", "two", "three, long", "seven"], "left alone while it asked for it"
    assert stats["cluster.preferred.nexthop.cool_down.set_aside"] == 1
    assert stats["cluster.preferred.nexthop.classes.rate_limited"] == 1
    assert stats["cluster.cheap.nexthop.outcome_at.cut"] == 1
    assert stats["nexthop.live_requests"] == 0
