//go:build !race && !asan

package nexthop

const instrumented = false
