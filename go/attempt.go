package nexthop

// #include "shim.h"
// #cgo noescape nexthop_go_pick
// #cgo nocallback nexthop_go_pick
// #cgo noescape nexthop_go_complete_status
// #cgo nocallback nexthop_go_complete_status
// #cgo noescape nexthop_go_fail
// #cgo nocallback nexthop_go_fail
// #cgo noescape nexthop_go_cancel
// #cgo nocallback nexthop_go_cancel
// #cgo noescape nexthop_go_end
// #cgo nocallback nexthop_go_end
// #cgo noescape nexthop_go_report
// #cgo nocallback nexthop_go_report
import "C"

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"
	"unsafe"
)

// Attempt is one upstream try. It is a value: copies are the same attempt.
type Attempt struct {
	Number     int           // from 1
	Host       *Host         // where to send it
	Timeout    time.Duration // to the response headers
	Remaining  time.Duration // of the request, to the end of the body
	HedgeAfter time.Duration // when to ask for another attempt although this one is in flight; 0: never

	id              uint64
	e               *Engine
	r               *Request // nil when stateless
	t               *try     // set by the loops of this package
	wantOK, wantErr uint16
	bits            uint16
}

// PickOption refines a stateless choice.
type PickOption func(*pick)

type pick struct {
	head  Head
	tried string
}

// WithHead gives a stateless choice a whole head; its Cluster and Route are not read.
func WithHead(h Head) PickOption {
	return func(p *pick) { p.head = h }
}

// WithKey replaces the hash policies of a stateless choice.
func WithKey(key []byte) PickOption {
	return func(p *pick) { p.head.Key = append([]byte{}, key...) }
}

// WithTried names addresses that earlier attempts used.
func WithTried(addresses ...string) PickOption {
	return func(p *pick) { p.tried = strings.Join(addresses, ",") }
}

// ChooseHost makes a stateless attempt with this number (from 1; 0 when it is not known, which a composite
// refuses), for callers with a retry loop of their own. It
// never waits: instead there is an error [*WouldWait]. Cancel in a defer gives the permits of an attempt back that was
// left without a report; the lease does so otherwise, 300 seconds (see [Options]) after its deadline or, without a
// deadline, an hour after the last call about it.
func (e *Engine) ChooseHost(cluster string, attempt int, options ...PickOption) (Attempt, error) {
	// A whole head with number 0 would be a request of more attempts.
	if attempt < 0 || attempt > math.MaxInt32 || attempt == 0 && len(options) != 0 {
		return Attempt{}, &UsageError{ErrInvalid, fmt.Sprintf("the attempt number is %d; attempts count from 1 to %d", attempt, math.MaxInt32)}
	}
	d := C.nexthop_decision{struct_size: C.sizeof_nexthop_decision}
	var status C.nexthop_status
	if len(options) == 0 {
		target, err := e.target(cluster)
		if err != nil {
			return Attempt{}, err
		}
		status = C.nexthop_go_pick(e.id.id, C.uint32_t(target), C.uint32_t(attempt), &d)
		if status == C.NEXTHOP_OK && d.kind == C.NEXTHOP_GO && d.bits == 0 {
			return e.attempt(&d, nil), nil
		}
		if status != C.NEXTHOP_OK {
			return Attempt{}, repeated(int(status), func() int {
				return int(C.nexthop_go_pick(e.id.id, C.uint32_t(target), C.uint32_t(attempt), &d))
			})
		}
	} else {
		var p pick
		for _, option := range options {
			option(&p)
		}
		p.head.Cluster, p.head.Route = cluster, ""
		var err error
		if status, err = e.begin(&p.head, uint32(attempt), p.tried, &d); err != nil {
			return Attempt{}, err
		}
		if status != C.NEXTHOP_OK {
			return Attempt{}, repeated(int(status), func() int {
				status, _ := e.begin(&p.head, uint32(attempt), p.tried, &d)
				return int(status)
			})
		}
	}
	e.seen(uint32(d.bits))
	switch d.kind {
	case C.NEXTHOP_GO:
		return e.attempt(&d, nil), nil
	case C.NEXTHOP_WAIT:
		e.seen(uint32(C.nexthop_go_finish(d.request.id, C.NEXTHOP_FINISH_CLIENT_GONE).bits))
		return Attempt{}, &WouldWait{Wait{limit(uint64(d.wait)), WaitReason(d.refusal)}}
	}
	return Attempt{}, e.refusal(&d, cluster)
}

// WouldWait is the error of a stateless choice that would have to wait.
type WouldWait struct{ Wait Wait }

func (w *WouldWait) Error() string {
	return "nexthop: would wait " + w.Wait.For.String() + " (" + w.Wait.Reason.String() + "); use a Request to wait"
}

func (e *Engine) attempt(d *C.nexthop_decision, r *Request) Attempt {
	a := Attempt{
		Number:    int(d.number),
		Host:      e.host(uint32(d.host), uint32(d.host_version)),
		Timeout:   limit(uint64(d.try_timeout)),
		Remaining: limit(uint64(d.remaining)),
		id:        uint64(d.attempt.id),
		e:         e,
		r:         r,
		wantOK:    uint16(d.want_ok),
		wantErr:   uint16(d.want_err),
		bits:      uint16(d.bits),
	}
	if d.wait != 0 {
		a.HedgeAfter = limit(uint64(d.wait))
	}
	return a
}

var errNoAttempt = &UsageError{ErrInvalid, "the attempt is empty; an engine or a request chooses one"}

// Outcome are facts about an attempt, for [Attempt.Report] and [Attempt.End].
type Outcome struct {
	Status    int     // 0: none
	Failure   Failure // 0: none
	GRPC      *int    // gRPC status
	Header    Header  // response headers; trailers in End
	Latency   time.Duration
	Bytes     uint64 // of the body; 0: unknown
	Detail    string // up to 256 bytes, for explanations
	Connected bool   // there was a connection, whatever the failure says
	NotSent   bool   // nothing was sent
	Cut       bool   // the body was cut short
	NoBody    bool
	Closed    bool // the connection is not kept alive
}

// Verdict is what to do with an attempt's result.
type Verdict struct {
	Action Action
	Reason Reason
	After  time.Duration // RETRY: the back-off; ChooseHost waits for it
	Status int           // the upstream's, or the local reply's
	Flags  Flags
	// The request's other attempts in flight are over: abort them in the client.
	AbortOthers bool
}

// Retry tells whether to choose again.
func (v Verdict) Retry() bool { return v.Action == Retry }

// Complete reports headers and end at once. 0: success without a status. h may be nil.
func (a Attempt) Complete(status int, h Header) (Verdict, error) {
	if h != nil && a.wantOf(status) > 1 {
		return a.report(C.GO_COMPLETE, &Outcome{Status: status, Header: h})
	}
	v := C.nexthop_go_complete_status(C.uint64_t(a.id), number(status))
	if v.code == C.NEXTHOP_OK && v.bits == 0 && a.t == nil {
		return verdictOf(&v), nil
	}
	return a.completed(v, status)
}

// completed is the rest of Complete, apart from its fast path.
func (a Attempt) completed(v C.nexthop_verdict, status int) (Verdict, error) {
	return a.answered(v, false, func() C.nexthop_verdict {
		return C.nexthop_go_complete_status(C.uint64_t(a.id), number(status))
	})
}

// Report is Complete with all facts.
func (a Attempt) Report(o Outcome) (Verdict, error) { return a.report(C.GO_COMPLETE, &o) }

// OnHeaders reports response headers. After [Forward] the body is the caller's: End, Fail or Body closes the attempt.
func (a Attempt) OnHeaders(status int, h Header) (Verdict, error) {
	return a.report(C.GO_ON_HEADERS, &Outcome{Status: status, Header: h})
}

// End reports that the response is over. o may be nil: a clean end. It does nothing when the attempt has ended.
func (a Attempt) End(o *Outcome) error {
	var err error
	if o == nil {
		_, err = a.answered(C.nexthop_go_end(C.uint64_t(a.id)), false, func() C.nexthop_verdict {
			return C.nexthop_go_end(C.uint64_t(a.id))
		})
	} else {
		_, err = a.report(C.GO_END, o)
	}
	return err
}

// Note tells a fact before the report. It does nothing when the attempt has ended.
func (a Attempt) Note(what Note) error {
	if a.e == nil {
		return errNoAttempt
	}
	return a.e.note(a.id, what)
}

// Cancel drops the attempt: no outlier report, no retry. It is for defer: nothing once the attempt has ended, or its
// body was handed over.
func (a Attempt) Cancel() {
	if a.e != nil && !a.isHanded() {
		a.cancel()
	}
}

func (a Attempt) cancel() {
	v := C.nexthop_go_cancel(C.uint64_t(a.id))
	a.e.seen(uint32(v.bits))
	if a.t != nil {
		a.t.note(Verdict{}, false)
	}
}

// wantOf is the set of headers wanted from an answer with this status.
func (a Attempt) wantOf(status int) uint16 {
	if status < 400 {
		return a.wantOK
	}
	return a.wantErr
}

func (a Attempt) report(how C.int, o *Outcome) (Verdict, error) {
	if a.e == nil {
		return Verdict{}, errNoAttempt
	}
	if o.Latency < 0 {
		return Verdict{}, &UsageError{ErrInvalid, "the latency is " + o.Latency.String() + "; 0 asks for the engine's own measurement"}
	}
	if o.Status < 0 || o.Status > 999 {
		return Verdict{}, &UsageError{ErrInvalid, fmt.Sprintf("the status is %d; it is 100 to 999, or 0 for a success without one", o.Status)}
	}
	var room [512]byte
	text := room[:0]
	if o.Header != nil {
		want := a.wantOf(o.Status)
		if o.Failure != 0 {
			want = a.wantErr
		}
		text = a.e.wanted(uint32(want)).pack(text, o.Header)
	}
	block := len(text)
	text = append(text, o.Detail...)
	grpc := -1
	if o.GRPC != nil {
		grpc = *o.GRPC
		if grpc < 0 {
			grpc = 127 // legal, but no code
		}
	}
	call := func() C.nexthop_verdict {
		return C.nexthop_go_report(how, C.uint64_t(a.id), number(o.Status), C.uint32_t(o.Failure), C.int32_t(grpc), o.bits(),
			C.uint64_t(o.Latency), C.uint64_t(o.Bytes), (*C.char)(unsafe.Pointer(&text[:1][0])), C.uint32_t(block), C.uint32_t(len(text)-block))
	}
	return a.answered(call(), how == C.GO_ON_HEADERS, call)
}

func (o *Outcome) bits() (bits C.uint32_t) {
	for bit, set := range [...]bool{o.Connected, o.NotSent, o.Cut, o.NoBody, o.Closed} {
		if set {
			bits |= 1 << bit
		}
	}
	return bits
}

// number lets the library refuse what is out of range, and say what it was.
func number(status int) C.uint32_t {
	return C.uint32_t(int32(max(math.MinInt32, min(status, math.MaxInt32))))
}

// answered turns the library's verdict into ours; again explains an error.
func (a Attempt) answered(v C.nexthop_verdict, headers bool, again func() C.nexthop_verdict) (Verdict, error) {
	if a.e == nil {
		return Verdict{}, errNoAttempt
	}
	a.e.seen(uint32(v.bits))
	if v.code != C.NEXTHOP_OK {
		return Verdict{}, repeated(int(v.code), func() int { return int(again().code) })
	}
	verdict := verdictOf(&v)
	if a.t != nil {
		a.t.note(verdict, headers && verdict.Action == Forward)
	}
	return verdict, nil
}

func verdictOf(v *C.nexthop_verdict) Verdict {
	return Verdict{
		Action:      Action(v.action),
		Reason:      Reason(v.reason),
		After:       time.Duration(v.after_ms) * time.Millisecond,
		Status:      int(v.status),
		Flags:       Flags(v.flags),
		AbortOthers: v.bits&C.NEXTHOP_ABORT_OTHERS != 0,
	}
}

// URL is where to send the attempt: scheme and address of the host, and the path, that of the request's head when
// empty, rewritten when the route says so. It is empty for an attempt that no engine chose.
func (a Attempt) URL(path string) string {
	if a.Host == nil {
		return ""
	}
	if path == "" {
		if a.r != nil {
			path = a.r.head.Path
		}
		for _, h := range a.rewrites() {
			if h.name == ":path" {
				path = h.value
			}
		}
	}
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	scheme, authority := a.origin()
	return scheme + "://" + authority + path
}

func (a Attempt) origin() (scheme, authority string) {
	if a.Host.Secure {
		return "https", strings.TrimSuffix(a.Host.Address, ":443")
	}
	return "http", strings.TrimSuffix(a.Host.Address, ":80")
}

func (a Attempt) rewrites() []extraHeader {
	if a.bits&C.NEXTHOP_BIT_REWRITE == 0 {
		return nil
	}
	return a.extraHeaders()
}

func (a Attempt) extraHeaders() []extraHeader {
	if a.bits&(C.NEXTHOP_BIT_HEADERS|C.NEXTHOP_BIT_REWRITE) == 0 {
		return nil
	}
	return a.e.extraHeaders(a.id)
}

// Headers are to be set on the upstream request; see SetHeaders for those to remove.
func (a Attempt) Headers() map[string]string {
	headers := map[string]string{}
	for _, h := range a.extraHeaders() {
		if !h.remove && !strings.HasPrefix(h.name, ":") {
			headers[h.name] = h.value
		}
	}
	return headers
}

// SetHeaders sets and removes what the policies say on the upstream request's headers.
func (a Attempt) SetHeaders(header http.Header) {
	for _, h := range a.extraHeaders() {
		switch {
		case strings.HasPrefix(h.name, ":"):
		case h.remove:
			header.Del(h.name)
		default:
			header.Set(h.name, h.value)
		}
	}
}

// IdleTimeout is how long the response may be silent.
func (a Attempt) IdleTimeout() time.Duration {
	info, _ := requestInfo(a.id)
	return info.IdleTimeout
}
