module github.com/nexthop/nexthop/examples/go

go 1.24

require github.com/nexthop/nexthop/go v0.0.0

replace github.com/nexthop/nexthop/go => ../../go
