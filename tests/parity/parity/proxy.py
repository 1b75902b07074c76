"""A real Envoy over the clusters and routes of many cases at once."""

import json
import os
import socket
import subprocess
import time
import urllib.request

ROUTER = "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"
MANAGER = (
    "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
)
FILE_LOG = "type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog"
ASSIGNMENT = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
VERSION = "1.40.0"


def log(path, **fields):
    return {
        "name": "envoy.access_loggers.file",
        "typed_config": {"@type": FILE_LOG, "path": path, "log_format": {"json_format": fields}},
    }


def bootstrap(cases, folder, port, admin):
    """One document for all cases: a virtual host each, named by its case."""
    hosts, clusters = [], []
    for case in cases:
        for cluster in case["config"]["clusters"]:
            if cluster.get("type") == "EDS":
                source = {"path_config_source": {"path": f"{folder}/{cluster['name']}.json"}}
                cluster = {**cluster, "eds_cluster_config": {"eds_config": {**source, "resource_api_version": "V3"}}}
            clusters.append(cluster)
        hosts.append({**case["config"]["virtual_host"], "name": case["name"], "domains": [case["name"]]})
    manager = {
        "@type": MANAGER,
        "stat_prefix": "h",
        "internal_address_config": {"cidr_ranges": [{"address_prefix": "10.0.0.0", "prefix_len": 8}]},
        "generate_request_id": False,
        "route_config": {"name": "routes", "virtual_hosts": hosts},
        "access_log": [
            log(
                f"{folder}/requests.log",
                id="%REQ(X-ID)%",
                st="%RESPONSE_CODE%",
                fl="%RESPONSE_FLAGS%",
                det="%RESPONSE_CODE_DETAILS%",
                n="%UPSTREAM_REQUEST_ATTEMPT_COUNT%",
            )
        ],
        "http_filters": [
            {
                "name": "envoy.filters.http.router",
                "typed_config": {
                    "@type": ROUTER,
                    "upstream_log": [
                        log(
                            f"{folder}/attempts.log",
                            id="%REQ(X-ID)%",
                            host="%UPSTREAM_HOST%",
                            st="%RESPONSE_CODE%",
                            fl="%RESPONSE_FLAGS%",
                        )
                    ],
                },
            }
        ],
    }
    document = {
        "node": {"id": "parity", "cluster": "parity"},
        "admin": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": admin}}},
        "cluster_manager": {"outlier_detection": {"event_log_path": f"{folder}/outlier.log"}},
        "static_resources": {
            "listeners": [
                {
                    "name": "in",
                    "address": {"socket_address": {"address": "127.0.0.1", "port_value": port}},
                    "filter_chains": [
                        {
                            "filters": [
                                {
                                    "name": "envoy.filters.network.http_connection_manager",
                                    "typed_config": manager,
                                }
                            ]
                        }
                    ],
                }
            ],
            "clusters": clusters,
        },
    }
    for case in cases:
        document.update(case["config"].get("bootstrap", {}))
    return document


def free_ports(count):
    """Ports that nobody listens on."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


class Envoy:
    """One running Envoy. Its files live in `folder`."""

    def __init__(self, binary, cases, folder):
        self.folder = str(folder)
        self.port, self.admin = free_ports(2)
        os.makedirs(self.folder, exist_ok=True)
        for name in ("requests.log", "attempts.log", "outlier.log"):
            open(f"{self.folder}/{name}", "w", encoding="utf-8").close()
        for case in cases:
            for cluster, endpoints in case["config"].get("eds_at_start", {}).items():
                self.write(cluster, endpoints)
        path = f"{self.folder}/bootstrap.json"
        with open(path, "w", encoding="utf-8") as out:
            json.dump(bootstrap(cases, self.folder, self.port, self.admin), out)
        command = [binary, "-c", path, "--concurrency", "1", "--disable-hot-restart", "-l", "error"]
        command += ["--file-flush-interval-msec", "20", "--log-path", f"{self.folder}/envoy.log"]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 60
        while True:
            try:
                if self.get("/ready").strip() == "LIVE":
                    return
            except OSError:
                pass
            if self.process.poll() is not None or time.monotonic() > until:
                self.stop()
                raise RuntimeError("Envoy did not start: " + open(f"{self.folder}/envoy.log").read()[-2000:])
            time.sleep(0.05)

    def get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}{path}", timeout=30) as reply:
            return reply.read().decode()

    def write(self, cluster, endpoints):
        """The file that Envoy reads a cluster's endpoints from; moved into place, which is what it watches."""
        path = f"{self.folder}/{cluster}.json"
        resource = {"@type": ASSIGNMENT, "cluster_name": cluster, "endpoints": endpoints}
        with open(path + ".new", "w", encoding="utf-8") as out:
            json.dump({"resources": [resource]}, out)
        os.rename(path + ".new", path)

    def endpoints(self, cluster, endpoints):
        """Changes a cluster's endpoints and waits until Envoy has taken them."""
        counter = f"/stats?filter=^cluster%5C.{cluster}%5C.update_success$"
        before = self.get(counter)
        self.write(cluster, endpoints)
        until = time.monotonic() + 10
        while self.get(counter) == before and time.monotonic() < until:
            time.sleep(0.01)
        # Its worker hears of it a moment later.
        time.sleep(0.05)

    def stats(self):
        text = self.get("/stats?format=json&filter=^cluster%5C.")
        return {stat["name"]: stat["value"] for stat in json.loads(text)["stats"] if "value" in stat}

    def hosts(self):
        """Cluster and address to what the admin page says of the host."""
        found = {}
        for cluster in json.loads(self.get("/clusters?format=json")).get("cluster_statuses", []):
            for host in cluster.get("host_statuses", []):
                at = host["address"]["socket_address"]
                found[cluster["name"], f"{at['address']}:{at['port_value']}"] = host
        return found

    def lines(self, name, wanted=None):
        """The entries of a log; waits until there are `wanted`."""
        until = time.monotonic() + 10
        while True:
            with open(f"{self.folder}/{name}", encoding="utf-8") as file:
                lines = [line for line in file.read().splitlines() if line]
            if wanted is None or len(lines) >= wanted or time.monotonic() > until:
                return [json.loads(line) for line in lines]
            time.sleep(0.03)

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
