package nexthop

// #include "nexthop.h"
import "C"

import (
	"math"
	"net/http"
	"runtime"
	"strings"
	"time"
	"unsafe"
)

// CheckProtocol is what a check speaks.
type CheckProtocol uint8

// Protocols of checks.
const (
	CheckHTTP   CheckProtocol = 1 // one request
	CheckTCP    CheckProtocol = 2 // a connection, and perhaps bytes
	CheckGRPC   CheckProtocol = 3 // grpc.health.v1.Health/Check, over HTTP/2
	CheckCustom CheckProtocol = 4 // something that only the caller knows, see Check.Extension
)

func (p CheckProtocol) String() string { return name(C.NEXTHOP_NAMES_CHECK_PROTOCOL, uint32(p)) }

// CheckResult is how a check ended, for [Check.Result].
type CheckResult uint8

// Results of checks.
const (
	CheckSuccess   CheckResult = 1 // it passed
	CheckDegraded  CheckResult = 2 // it passed, and the host says that it is degraded
	CheckFailed    CheckResult = 3 // the host answered badly, which fails it at once
	CheckNetwork   CheckResult = 4 // no connection, reset, disconnect; counts towards the threshold
	CheckTimeout   CheckResult = 5 // no answer in time; counts towards the threshold
	CheckRetriable CheckResult = 6 // the host answered badly in a way that counts towards the threshold
	CheckPassive   CheckResult = 7 // data traffic says that the host has failed; the check itself is still out
)

func (r CheckResult) String() string { return name(C.NEXTHOP_NAMES_CHECK_RESULT, uint32(r)) }

// A Check is to be performed now: connect to Address, ask, report once. What is not reported within Timeout counts as
// timed out. Reports give ErrEnded when it was reported before, is out of time, or its host has left: nothing has
// changed then.
type Check struct {
	ID        uint64
	Host      *Host
	Cluster   string
	Name      string // of the checker; empty when its cluster has one
	Protocol  CheckProtocol
	HTTP2     bool
	MayReuse  bool // one connection may carry many checks
	Secure    bool // TLS towards the host
	Extension string
	Address   string // "ip:port": the host's, unless the documents name another to check
	Method    string
	Path      string
	Authority string
	Header    http.Header // of the request, besides its authority
	Payload   []byte      // a body, a framed gRPC message, or plain bytes to send
	Timeout   time.Duration
	BodyLimit int64 // bytes of a response's body that are looked at

	want uint32
	e    *Engine
}

// Checks gives the active checks that are due, each handed out once. The first call begins active checking: before it
// hosts count as if no cluster had health_checks; those that serve at that moment go on until their first result.
func (e *Engine) Checks() ([]*Check, error) {
	if !e.made() {
		return nil, errNoEngine
	}
	defer runtime.KeepAlive(e)
	var due []*Check
	for {
		check, err := e.pollCheck()
		if check == nil || err != nil {
			return due, err
		}
		due = append(due, check)
	}
}

func (e *Engine) pollCheck() (*Check, error) {
	raw := C.nexthop_check{struct_size: C.sizeof_nexthop_check}
	var pin runtime.Pinner
	defer pin.Unpin()
	// The results point into the buffer, so it stays where it is.
	packed, err := text(func(buf *C.char, n C.size_t, needed *C.size_t) C.nexthop_status {
		pin.Pin((*byte)(unsafe.Pointer(buf)))
		return C.nexthop_poll_check(e.id, C.NEXTHOP_NOW, &raw, buf, n, needed)
	})
	if err != nil || len(packed) == 0 {
		return nil, err
	}
	check := &Check{
		ID:        uint64(raw.id),
		Host:      e.host(uint32(raw.host), uint32(raw.host_version)),
		Cluster:   interned(raw.cluster),
		Name:      goString(raw.name),
		Protocol:  CheckProtocol(raw.protocol),
		HTTP2:     raw.bits&C.NEXTHOP_CHECK_BIT_HTTP2 != 0,
		MayReuse:  raw.bits&C.NEXTHOP_CHECK_BIT_REUSE != 0,
		Secure:    raw.bits&C.NEXTHOP_CHECK_BIT_SECURE != 0,
		Extension: goString(raw.extension),
		Address:   goString(raw.address),
		Method:    goString(raw.method),
		Path:      goString(raw.path),
		Authority: goString(raw.authority),
		Header:    http.Header{},
		Payload:   []byte(goString(raw.send)),
		Timeout:   time.Duration(raw.timeout),
		BodyLimit: int64(min(uint64(raw.body_limit), math.MaxInt64)),
		want:      uint32(raw.want),
		e:         e,
	}
	words := strings.Split(goString(raw.headers), "\x00")
	for i := 0; i+1 < len(words); i += 2 {
		check.Header.Add(words[i], words[i+1])
	}
	runtime.KeepAlive(packed)
	return check, nil
}

// ChecksDeadline tells when checks are due; 0: nothing is checked, or nobody has asked yet. Updates of documents and hosts
// may bring some that are due at once: look at least every second.
func (e *Engine) ChecksDeadline() time.Duration {
	if !e.made() {
		return 0
	}
	defer runtime.KeepAlive(e)
	return limit(uint64(C.nexthop_checks_deadline(e.id, C.NEXTHOP_NOW)))
}

// Result reports what the caller judged.
func (c *Check) Result(result CheckResult) error {
	if result == 0 {
		return &UsageError{ErrInvalid, "the result is 0; there are 1 to 7"}
	}
	_, err := c.report(C.uint32_t(result), 0, 0, nil, nil)
	return err
}

// Answer reports an answer over HTTP or gRPC, which the library judges: status, body, headers and trailers.
func (c *Check) Answer(status int, body []byte, headers ...Header) error {
	if status < 0 || status > math.MaxUint16 {
		return &UsageError{ErrInvalid, "the status is out of range; an answer has 100 to 999"}
	}
	var block []byte
	if c.e.made() {
		for _, header := range headers {
			if header != nil {
				block = c.e.wanted(c.want).pack(block, header)
			}
		}
	}
	_, err := c.report(C.NEXTHOP_CHECK_JUDGE, status, 0, block, body)
	return err
}

// Data reports everything that a TCP connection has brought so far, nothing once it is up, and tells whether that decides
// the check; otherwise read on.
func (c *Check) Data(received []byte) (bool, error) {
	return c.report(C.NEXTHOP_CHECK_JUDGE, 0, 0, nil, received)
}

// Fail reports that there was no (whole) answer, see [FailureOf]. Time-outs count as such, everything else as a matter of
// the network.
func (c *Check) Fail(err error) error {
	failure := FailureOf(err)
	if failure == 0 {
		failure = RemoteReset
	}
	_, told := c.report(C.NEXTHOP_CHECK_JUDGE, 0, failure, nil, nil)
	return told
}

func (c *Check) report(result C.uint32_t, status int, failure Failure, block, body []byte) (bool, error) {
	if c == nil || !c.e.made() {
		return false, errNoEngine
	}
	var pin runtime.Pinner
	defer pin.Unpin()
	outcome := C.nexthop_outcome{
		struct_size: C.sizeof_nexthop_outcome, status: C.uint16_t(status), failure: C.uint8_t(failure), grpc_status: -1,
		headers: cBytes(&pin, block),
	}
	given, decided := cBytes(&pin, body), true
	err := c.e.checked(func() C.nexthop_status {
		told := C.nexthop_check_result(c.e.id, C.uint64_t(c.ID), result, &outcome, given, C.NEXTHOP_NOW)
		if told == C.NEXTHOP_EMPTY {
			decided = false
			return C.NEXTHOP_OK
		}
		return told
	})
	c.e.wakeReady()
	return decided && err == nil, err
}

// cBytes lends bytes to C until pin is let go.
func cBytes(pin *runtime.Pinner, bytes []byte) C.nexthop_str {
	if len(bytes) == 0 {
		return C.nexthop_str{}
	}
	pin.Pin(&bytes[0])
	return C.nexthop_str{ptr: (*C.char)(unsafe.Pointer(&bytes[0])), len: C.size_t(len(bytes))}
}
