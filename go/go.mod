module github.com/nexthop/nexthop/go

go 1.24
