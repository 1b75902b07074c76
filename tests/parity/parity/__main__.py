"""Parity with a running Envoy: `python -m parity --seeds N`. See tests/parity/README.md."""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
from collections import Counter

from . import cases, judge, play, proxy, shrink, vector

ROOT = pathlib.Path(__file__).resolve().parents[3]
OUT = ROOT / "target" / "parity"
# Seconds after each request when a disagreement is tried again.
PAUSES = (0.01, 0.03)


class Bench:
    """The backends' process, and Envoys one after the other."""

    def __init__(self, binary):
        self.binary = binary
        command = [sys.executable, "-m", "parity.backends", str(cases.PORT)]
        self.backends = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def tell(self, **command):
        self.backends.stdin.write(json.dumps(command) + "\n")
        self.backends.stdin.flush()
        if self.backends.stdout.readline() != "ok\n":
            raise RuntimeError("the backends are gone")

    def listen(self, batch):
        for case in batch:
            hosts = {case["hosts"][name].split(":")[0]: spec for name, spec in case["behaviours"].items()}
            self.tell(listen=hosts)

    def envoy(self, batch, pause=0.0):
        """Plays the batch through one Envoy, with a pause after each request: what it did with each case."""
        folder = OUT / f"envoy-{os.getpid()}"
        envoy = proxy.Envoy(self.binary, batch, folder)
        try:
            started, rows = time.monotonic(), {}
            # Cases that wait for a sweep first: their requests belong into Envoy's first interval.
            late = [case for case in batch if len(play.parts(case)[0]) > 1]
            for case in late + [case for case in batch if case not in late]:
                rows[case["name"]] = play.through_envoy(case, envoy, play.parts(case)[0][0], 0, pause)
            for case in late:
                lists, sleeps = play.parts(case)
                for part, seconds in zip(lists[1:], sleeps):
                    time.sleep(max(0, started + seconds - time.monotonic()))
                    done = rows[case["name"]]
                    done += play.through_envoy(case, envoy, part, len(done), pause)
            wanted = sum(map(len, rows.values()))
            requests = {entry["id"]: entry for entry in envoy.lines("requests.log", wanted)}
            time.sleep(0.05)
            attempts = {}
            for entry in envoy.lines("attempts.log"):
                attempts.setdefault(entry["id"], []).append(entry)
            events, stats, hosts = envoy.lines("outlier.log"), envoy.stats(), envoy.hosts()
        finally:
            envoy.stop()
        done = {}
        for case in batch:
            play.logged(case, rows[case["name"]], requests, attempts)
            names = {cluster["name"] for cluster in case["config"]["clusters"]}
            done[case["name"]] = judge.Envoys(
                rows[case["name"]],
                stats,
                {address: host for (cluster, address), host in hosts.items() if cluster in names},
                [event for event in events if event.get("cluster_name") in names],
            )
        return done

    def play(self, batch, tests, pause=0.0):
        """Each case with its disagreements."""
        self.listen(batch)
        try:
            done = self.envoy(batch, pause)
            return [(case, judge.judge(done[case["name"]], case, tests)) for case in batch]
        finally:
            self.tell(close=True)

    def confirmed(self, case, found):
        """The disagreements of a case that a second run alone, at leisure, has too.

        Envoy's main thread ejects: what its worker does until then is a race that an idle proxy wins."""
        for pause in PAUSES:
            if not found:
                break
            ((_, found),) = self.play([case], [], pause)
        return found

    def close(self):
        self.backends.stdin.close()
        self.backends.wait()


def record(bench, case, path):
    """Writes a case that was decided as a vector."""
    try:
        bench.listen([case])
        path.write_text(vector.text(vector.vector(case, bench.envoy([case])[case["name"]])), encoding="utf-8")
    finally:
        bench.close()
    return 0


def report(path, options, kinds, wrong, tests, seconds, requests):
    """The table of the last run."""
    lines = [
        "# Parity with a running Envoy",
        "",
        "Written by the parity runner (`make parity SEEDS=n`, see `tests/parity/README.md`): the last run with a report.",
        "",
        f"Envoy {proxy.VERSION}; {sum(kinds.values())} generated cases (seeds {options.start} to "
        f"{options.start + options.seeds - 1}), {requests} requests to Envoy, {seconds:.0f} s.",
        f"Statistical comparisons: {sum(count for _, count, _, _ in tests)} tests, together at most "
        f"{judge.FALSE_ALARMS:g} chance of a false alarm (Bonferroni).",
        "",
        "| kind | cases | compared | disagreements |",
        "|---|---|---|---|",
    ]
    for kind in sorted(kinds):
        how = cases.make(next(s for s in range(len(cases.ROUND)) if cases.ROUND[s] == kind))["determinism"]["class"]
        lines.append(f"| {kind} | {kinds[kind]} | {how} | {wrong[kind]} |")
    lines.append(f"| all | {sum(kinds.values())} | | {sum(wrong.values())} |")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(prog="parity", description=__doc__)
    parser.add_argument("--envoy", required=True, help="the envoy binary")
    parser.add_argument("--seeds", type=int, default=62)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--kind", help="only cases of this kind")
    parser.add_argument("--batch", type=int, default=62, help="cases of one Envoy")
    parser.add_argument("--report", type=pathlib.Path, help="write the table here")
    parser.add_argument("--case", type=pathlib.Path, help="play this case file instead")
    parser.add_argument("--vector", type=pathlib.Path, help="write the case with Envoy's result here, and compare nothing")
    parser.add_argument("--keep", action="store_true", help="print disagreements without making them smaller")
    options = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    if options.case:
        chosen = [json.loads(options.case.read_text(encoding="utf-8"))]
    else:
        chosen = [cases.make(seed, options.kind) for seed in range(options.start, options.start + options.seeds)]
    if options.vector:
        return record(Bench(options.envoy), chosen[0], options.vector)
    bench, tests, began = Bench(options.envoy), [], time.monotonic()
    kinds, wrong, bad, requests = Counter(), Counter(), [], 0
    try:
        for i in range(0, len(chosen), options.batch):
            batch = chosen[i : i + options.batch]
            for case, found in bench.play(batch, tests):
                found = bench.confirmed(case, found)
                kinds[case["topic"]] += 1
                requests += play.count(case)
                if found:
                    bad.append((case, found))
            print(f"parity: {i + len(batch)} of {len(chosen)} cases, {len(bad)} disagree", file=sys.stderr, flush=True)
        for case, text in judge.alarms(tests):
            bad.append((case, [text]))
        seconds = time.monotonic() - began
        for case, found in bad:
            wrong[case["topic"]] += 1
            small = case if options.keep else shrink.smallest(bench, case)
            path = OUT / f"{case['name']}.json"
            path.write_text(json.dumps(small, indent=1) + "\n", encoding="utf-8")
            print(f"parity: {case['name']} disagrees; minimal case in {path.relative_to(ROOT)}")
            for line in found[:8]:
                print(f"  {line}")
            print(json.dumps(small))
    finally:
        bench.close()
        shutil.rmtree(OUT / f"envoy-{os.getpid()}", ignore_errors=True)
    if options.report:
        report(options.report, options, kinds, wrong, tests, seconds, requests)
    print(f"parity: {sum(kinds.values())} cases, {requests} requests, {len(bad)} disagreements, {seconds:.0f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
