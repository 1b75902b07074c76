package nexthop

// #include "nexthop.h"
// #cgo noescape nexthop_poll_ready
// #cgo nocallback nexthop_poll_ready
import "C"

import (
	"context"
	"time"
)

// Nobody waits longer before asking again: a lost wake-up costs a second, not a hang.
const longestWait = time.Second

// seen acts on the bits that every call returns: whoever frees a permit wakes who waits for it.
func (e *Engine) seen(bits uint32) {
	if bits&(C.NEXTHOP_WAKE|C.NEXTHOP_WANT_CHANGED) != 0 {
		e.act(bits)
	}
}

func (e *Engine) act(bits uint32) {
	if bits&C.NEXTHOP_WANT_CHANGED != 0 {
		e.wants.request.Store(nil)
	}
	if bits&C.NEXTHOP_WAKE != 0 {
		e.wakeReady()
	}
}

// wakeReady wakes the requests whose wait is over.
func (e *Engine) wakeReady() {
	for {
		var ready [16]C.nexthop_ready
		var n C.size_t
		if C.nexthop_poll_ready(e.id, &ready[0], C.size_t(len(ready)), &n) != C.NEXTHOP_OK {
			return
		}
		e.mu.Lock()
		for _, r := range ready[:n] {
			// Who is not there yet asks once more before it sleeps.
			if waiter := e.waiting[uint64(r.request.id)]; waiter != nil {
				waiter.ring()
			}
		}
		e.mu.Unlock()
		if int(n) < len(ready) {
			return
		}
	}
}

// wakeAll makes everybody ask again.
func (e *Engine) wakeAll() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, waiter := range e.waiting {
		waiter.ring()
	}
}

func (r *Request) ring() {
	select {
	case r.bell <- struct{}{}:
	default:
	}
}

// listen puts the request among those that can be woken.
func (r *Request) listen() {
	r.e.mu.Lock()
	defer r.e.mu.Unlock()
	if r.bell == nil {
		r.bell = make(chan struct{}, 1)
	}
	r.e.waiting[r.id.Load()] = r
	r.waits++
}

func (r *Request) unlisten() {
	r.e.mu.Lock()
	defer r.e.mu.Unlock()
	if r.waits--; r.waits == 0 {
		delete(r.e.waiting, r.id.Load())
	}
}

// sleep waits for the bell, the time, or the context's end.
func (r *Request) sleep(ctx context.Context, d time.Duration) error {
	d = min(d, longestWait)
	if r.e.manual {
		// Only Advance makes time pass, and it rings.
		d = longestWait
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-r.bell:
	case <-timer.C:
	}
	return nil
}
