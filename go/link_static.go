//go:build !nexthop_shared

package nexthop

// #cgo CFLAGS: -I${SRCDIR}/internal/native
// #cgo linux LDFLAGS: ${SRCDIR}/internal/native/libnexthop.a -lm -ldl -lpthread
// #cgo darwin LDFLAGS: ${SRCDIR}/internal/native/libnexthop.a -liconv -framework Security
import "C"
