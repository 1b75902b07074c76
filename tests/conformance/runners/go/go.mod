module github.com/nexthop/nexthop/tests/conformance/runners/go

go 1.24

require github.com/nexthop/nexthop/go v0.0.0

replace github.com/nexthop/nexthop/go => ../../../../go
