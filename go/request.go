package nexthop

// #include "shim.h"
// #cgo noescape nexthop_go_choose
// #cgo nocallback nexthop_go_choose
// #cgo noescape nexthop_go_finish
// #cgo nocallback nexthop_go_finish
import "C"

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Request is one downstream request. Close it when its client is gone or served; once it is done that does nothing.
type Request struct {
	e    *Engine
	head Head

	mu     sync.Mutex    // one first choice
	id     atomic.Uint64 // 0 before it
	closed atomic.Bool
	handed atomic.Bool // a body was handed over and ends the request
	// The upload was over before the first choice.
	uploaded bool

	// Guarded by the engine's lock.
	bell  chan struct{}
	waits int

	cleanup runtime.Cleanup
	watched bool
}

// Request begins a downstream request; nothing crosses into the engine before the first choice.
func (e *Engine) Request(h Head) *Request { return &Request{e: e, head: h} }

// Wait tells that there is no attempt now: ask again after For, or when a report frees a permit. The zero value is
// no wait.
type Wait struct {
	For    time.Duration
	Reason WaitReason
}

const forever = time.Duration(1<<63 - 1)

// TryChooseHost never waits: an attempt, or a wait with For > 0, or an error, among them [*Refusal].
func (r *Request) TryChooseHost() (Attempt, Wait, error) {
	d := C.nexthop_decision{struct_size: C.sizeof_nexthop_decision}
	status, err := r.choose(&d)
	if err != nil {
		return Attempt{}, Wait{}, err
	}
	r.e.seen(uint32(d.bits))
	if status != C.NEXTHOP_OK {
		return Attempt{}, Wait{}, repeated(int(status), func() int {
			status, _ := r.choose(&d)
			return int(status)
		})
	}
	switch d.kind {
	case C.NEXTHOP_GO:
		a := r.e.attempt(&d, r)
		if a.Remaining == 0 && !r.watched {
			r.watch()
		}
		return a, Wait{}, nil
	case C.NEXTHOP_WAIT:
		w := Wait{limit(uint64(d.wait)), WaitReason(d.refusal)}
		if w.For == 0 {
			w.For = forever
		}
		return Attempt{}, w, nil
	}
	return Attempt{}, Wait{}, r.e.refusal(&d, r.head.target())
}

var errNoContext = &UsageError{ErrInvalid, "the context is nil; give context.Background() for none"}

var errNoRequest = &UsageError{ErrInvalid, "the request is nil or empty; Engine.Request makes one"}

// made tells whether this is a request of an engine; nil and zero values are none.
func (r *Request) made() bool { return r != nil && r.e.made() }

// choose is begin, once, and then choose.
func (r *Request) choose(d *C.nexthop_decision) (C.nexthop_status, error) {
	if !r.made() {
		return 0, errNoRequest
	}
	id := r.id.Load()
	if id == 0 {
		r.mu.Lock()
		if id = r.id.Load(); id == 0 {
			status, err := r.begin(d)
			r.mu.Unlock()
			return status, err
		}
		r.mu.Unlock()
	}
	return C.nexthop_go_choose(C.uint64_t(id), d), nil
}

// begin makes the first choice, with the lock held.
func (r *Request) begin(d *C.nexthop_decision) (C.nexthop_status, error) {
	if r.closed.Load() {
		return 0, &UsageError{ErrEnded, "the request is closed; make a new one"}
	}
	if r.uploaded && r.head.Body == BodyStreaming {
		r.head.Body = BodyOnce
		if r.head.Replay {
			r.head.Body = BodyReplayable
		}
	}
	status, err := r.e.begin(&r.head, 0, "", d)
	if err == nil && status == C.NEXTHOP_OK {
		r.id.Store(uint64(d.request.id))
	}
	return status, err
}

// watch lets the collector finish a request that nothing else would end: one without a deadline, dropped.
func (r *Request) watch() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.watched {
		r.watched = true
		e := r.e
		r.cleanup = runtime.AddCleanup(r, func(id uint64) {
			e.seen(uint32(C.nexthop_go_finish(C.uint64_t(id), C.NEXTHOP_FINISH_CLIENT_GONE).bits))
		}, r.id.Load())
	}
}

// ChooseHost answers with the next attempt; it waits for back-off and for permits. When ctx ends, the request is
// finished as one whose client is gone, and the error is ctx.Err(). A refusal is a [*Refusal].
func (r *Request) ChooseHost(ctx context.Context) (Attempt, error) {
	if ctx == nil {
		return Attempt{}, errNoContext
	}
	a, w, err := r.TryChooseHost()
	if err != nil || w.For == 0 {
		return a, err
	}
	r.listen()
	defer r.unlisten()
	for {
		// Asked again before sleeping: nobody could ring before.
		a, w, err = r.TryChooseHost()
		if err != nil || w.For == 0 {
			return a, err
		}
		if err = r.sleep(ctx, w.For); err != nil {
			r.finish(C.NEXTHOP_FINISH_CLIENT_GONE)
			return Attempt{}, err
		}
	}
}

// Attempts ranges over attempts until one is forwarded, refused, or the loop is left: an attempt that the body left
// unreported is cancelled, and the iteration ends. The last pair may be an error.
func (r *Request) Attempts(ctx context.Context) func(yield func(Attempt, error) bool) {
	return func(yield func(Attempt, error) bool) {
		defer r.Close()
		for {
			a, err := r.ChooseHost(ctx)
			if err != nil {
				yield(Attempt{}, err)
				return
			}
			t := &try{}
			t.Attempt, a.t = a, t
			if !yield(a, nil) {
				a.Cancel()
				return
			}
			if t.last().Action != Retry {
				if state, handed := t.stage(); state == tryAnswered && !handed {
					_ = a.End(nil)
				}
				a.Cancel()
				return
			}
		}
	}
}

// LocalReply is what to answer to the client when no upstream did.
type LocalReply struct {
	Status  int
	Flags   Flags
	Details string // Envoy's response code details
	Headers map[string]string
	Body    string
}

// Reply is the local reply after a refusal, or after the final verdict of an attempt without response. Ask right
// after it.
func (r *Request) Reply() (LocalReply, bool) {
	if !r.made() {
		return LocalReply{}, false
	}
	return r.e.reply(r.id.Load())
}

// ResponseHeaders are to be set on the answer for the client.
func (r *Request) ResponseHeaders() map[string]string {
	headers := map[string]string{}
	if !r.made() {
		return headers
	}
	for _, h := range r.e.extraHeaders(r.id.Load()) {
		if !h.remove {
			headers[h.name] = h.value
		}
	}
	return headers
}

// RequestInfo is what a request became.
type RequestInfo struct {
	Cluster, Route       string
	Timeout, IdleTimeout time.Duration
}

// Info tells what the request became, from its first choice on.
func (r *Request) Info() (RequestInfo, error) {
	if !r.made() {
		return RequestInfo{}, errNoRequest
	}
	id := r.id.Load()
	if id == 0 {
		return RequestInfo{}, errNotBegun
	}
	return requestInfo(id)
}

var errNotBegun = &UsageError{ErrState, "no attempt has begun yet; choose a host first"}

// BodyComplete tells that a streamed upload is over: timers start, or, before the first choice, run from it on.
func (r *Request) BodyComplete() {
	if !r.made() {
		return
	}
	r.mu.Lock()
	begun := r.id.Load() != 0
	r.uploaded = r.uploaded || !begun
	r.mu.Unlock()
	if begun {
		_ = r.Note(NoteBodyComplete)
	}
}

// RetryAbandoned tells that the upload outgrew what the caller keeps: no retry any more.
func (r *Request) RetryAbandoned() { _ = r.Note(NoteRetryAbandoned) }

// Note tells a fact about the request, from its first choice on. It does nothing when the request has ended.
func (r *Request) Note(what Note) error {
	if !r.made() {
		return errNoRequest
	}
	id := r.id.Load()
	if id == 0 {
		return errNotBegun
	}
	return r.e.note(id, what)
}

// Close ends the request; its open attempts are cancelled. A body that was handed over goes on and ends it.
func (r *Request) Close() {
	if r.made() && !r.handed.Load() {
		r.finish(C.NEXTHOP_FINISH_CLIENT_GONE)
	}
}

func (r *Request) finish(reason C.uint32_t) {
	r.mu.Lock()
	r.closed.Store(true)
	id := r.id.Load()
	r.mu.Unlock()
	if id != 0 {
		r.e.seen(uint32(C.nexthop_go_finish(C.uint64_t(id), reason).bits))
	}
}

func (e *Engine) note(id uint64, what Note) error {
	var bits C.uint32_t
	err := checked(func() C.nexthop_status {
		return C.nexthop_note(C.uint64_t(id), C.uint32_t(what), C.NEXTHOP_NOW, &bits)
	})
	if err == nil {
		e.seen(uint32(bits))
	}
	return err
}
