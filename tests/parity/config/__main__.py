"""Acceptance of documents by `envoy --mode validate` and by nexthop: see tests/parity/README.md."""

import argparse
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import tomllib

import nexthop

from . import corpus

# Every n-th document is enough for a quick run.
QUICK = 14


def by_envoy(binary, folder, number, text):
    """`None` when Envoy takes it, else its complaint."""
    path = f"{folder}/{number}.yaml"
    pathlib.Path(path).write_text(text, encoding="utf-8")
    command = [binary, "--mode", "validate", "-c", path, "--disable-hot-restart", "-l", "off", "--concurrency", "1"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False)
    if done.returncode == 0:
        return None
    lines = [line for line in done.stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1][:300] if lines else f"exit {done.returncode}"


def by_nexthop(text):
    try:
        nexthop.Engine.from_str(text, dialect="envoy").close()
    except nexthop.ConfigError as error:
        return str(error)[:300]
    return None


def main():
    parser = argparse.ArgumentParser(prog="config", description=__doc__)
    parser.add_argument("--envoy", required=True, help="the envoy binary")
    parser.add_argument("--quick", action="store_true", help=f"every {QUICK}th document, and those written by hand")
    parser.add_argument("--only", default="", help="documents whose name begins so")
    options = parser.parse_args()
    known = tomllib.loads((corpus.HERE / "differences.toml").read_text(encoding="utf-8"))
    reasons = {name: entry for entry in known["difference"] for name in entry["documents"]}
    documents = [(name, json.dumps(document)) for name, document in corpus.generated()]
    if options.quick:
        documents = documents[::QUICK]
    documents += corpus.written()
    documents = [(name, text) for name, text in documents if name.startswith(options.only)]
    began, bad, seen = time.monotonic(), [], set()
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(by_envoy, options.envoy, folder, i, text) for i, (_, text) in enumerate(documents)]
        for (name, text), answer in zip(documents, asked):
            envoy, own = answer.result(), by_nexthop(text)
            entry = reasons.get(name)
            seen.add(name)
            if (envoy is None) == (own is None):
                if entry:
                    bad.append(f"{name}: listed as a difference, but both {'take' if own is None else 'refuse'} it")
            elif not entry:
                bad.append(f"{name}: Envoy: {envoy or 'taken'}; nexthop: {own or 'taken'}")
            elif (entry["nexthop"] == "takes") != (own is None):
                bad.append(f"{name}: the difference is listed the other way round")
    if not options.quick and not options.only:
        bad += [f"{name}: listed as a difference, but there is no such document" for name in reasons if name not in seen]
    for line in bad:
        print(f"config: {line}")
    listed = sum(name in seen for name in reasons)
    print(
        f"config: {len(documents)} documents, {len(bad)} unexplained, {listed} differences with a reason, "
        f"{time.monotonic() - began:.0f} s"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
