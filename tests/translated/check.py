"""Translates each document of tests/vectors/istio that is good, and lets Envoy judge the result: `check.py ENVOY NEXTHOP`."""

import json
import pathlib
import subprocess
import sys
import tempfile

VECTORS = pathlib.Path(__file__).resolve().parents[1] / "vectors" / "istio"

LISTENER = """  listeners:
  - name: all
    address: {socket_address: {address: 127.0.0.1, port_value: 0}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: all
          http_filters:
          - name: envoy.filters.http.router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
          route_config:
"""


def bootstrap(translation: str, folder: pathlib.Path) -> str:
    """The translation's documents as one bootstrap. Clusters that wait for hosts from elsewhere get a file that has none."""
    nothing = folder / "none.yaml"
    nothing.write_text("resources: []\n")
    eds = f"type: EDS\n    eds_cluster_config: {{eds_config: {{path_config_source: {{path: {nothing}}}}}}}"
    clusters, routes = [], []
    for document in translation.split("---\n"):
        if document.startswith("static_resources:\n"):
            clusters.append(document.removeprefix("static_resources:\n").rstrip("\n"))
        elif "virtual_hosts:" in document:
            routes.append(document)
    if len(clusters) > 1 or len(routes) > 1:
        raise SystemExit("more than one bootstrap or route table in a translation: this test needs to learn of it")
    text = "static_resources:\n" + "".join(f"{block}\n" for block in clusters).replace("type: EDS", eds)
    for table in routes:
        text += LISTENER + "".join(f"            {line}\n" for line in table.splitlines())
    return text


def main() -> int:
    envoy, nexthop = sys.argv[1:]
    accepted, refused, failed = 0, 0, []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for path in sorted(VECTORS.glob("*.yaml")):
            expected = json.loads(path.with_suffix(".expect.json").read_text())
            made = subprocess.run([nexthop, "translate", path], capture_output=True, text=True)
            if expected["validation"]["errors"]:
                refused += made.returncode == 1
                if made.returncode != 1:
                    failed.append(f"{path.name}: has errors and was translated")
                continue
            if made.returncode:
                failed.append(f"{path.name}: {made.stderr.strip()}")
                continue
            config = folder / "bootstrap.yaml"
            config.write_text(bootstrap(made.stdout, folder))
            node = ["--service-node", "node", "--service-cluster", "nodes"]
            command = [envoy, "--mode", "validate", "--log-level", "error", *node, "-c", config]
            judged = subprocess.run(command, capture_output=True, text=True)
            if judged.returncode:
                failed.append(f"{path.name}: {judged.stderr.strip()[-600:]}")
            accepted += judged.returncode == 0
    for line in failed:
        print(line)
    print(f"translated: {accepted} accepted by Envoy, {refused} refused before, {len(failed)} failed")
    return bool(failed) or accepted == 0


if __name__ == "__main__":
    sys.exit(main())
