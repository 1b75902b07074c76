//go:build nexthop_shared

package nexthop

// The shared library: for programs with other Rust archives, whose runtimes clash. Where it and its header lie is
// told by CGO_CFLAGS (-I) and CGO_LDFLAGS (-L).

// #cgo LDFLAGS: -lnexthop
import "C"
