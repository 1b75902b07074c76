"""The same configurations, requests and backends through a real Envoy and through nexthop."""
