"""Documents that a real Envoy and nexthop both judge: accepted or refused."""
