package nexthop

// #include "nexthop.h"
import "C"

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
)

// Body hands the attempt over to the response's body: its end ends the attempt, its error fails it, closing it early
// cancels it. From then on Cancel and the request's Close leave the attempt alone. OnHeaders comes first: without it
// nothing is handed over, and reading gives a [*UsageError] with ErrState. The body of an attempt that has ended is
// given back as it is.
func (a Attempt) Body(b io.ReadCloser) io.ReadCloser {
	if a.e == nil || b == nil {
		return b
	}
	err := checked(func() C.nexthop_status { return C.nexthop_answered(C.nexthop_attempt{id: C.uint64_t(a.id)}) })
	switch {
	case errors.Is(err, ErrEnded):
		return b
	case err != nil:
		return &unready{b, err}
	}
	a.handOver()
	body := &body{ReadCloser: b, attempt: a}
	// Upgraded connections are written to as well.
	if w, ok := b.(io.Writer); ok {
		return &duplex{body, w}
	}
	return body
}

// unready is the body of an attempt whose headers were not reported.
type unready struct {
	io.ReadCloser
	err error
}

func (b *unready) Read([]byte) (int, error) { return 0, b.err }

type body struct {
	io.ReadCloser
	attempt Attempt
	ended   atomic.Bool
	once    sync.Once
	closed  error
}

type duplex struct {
	*body
	io.Writer
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !b.ended.Swap(true) {
		if err == io.EOF {
			// It may have been ended from elsewhere; whatever else is wrong must not leave it open.
			if b.attempt.End(nil) != nil {
				b.attempt.cancel()
			}
		} else {
			_, _ = b.attempt.Fail(err)
		}
		b.attempt.release()
	}
	return n, err
}

func (b *body) Close() error {
	b.once.Do(func() {
		if !b.ended.Swap(true) {
			b.attempt.cancel()
			b.attempt.release()
		}
		b.closed = b.ReadCloser.Close()
	})
	return b.closed
}

// handOver marks the attempt as its body's.
func (a Attempt) handOver() {
	if a.t != nil {
		a.t.handOver()
	}
	if a.r != nil {
		a.r.handed.Store(true)
		return
	}
	a.e.mu.Lock()
	defer a.e.mu.Unlock()
	a.e.handed[a.id] = struct{}{}
	a.e.handedCount.Store(int32(len(a.e.handed)))
}

// isHanded tells whether a body ends the attempt.
func (a Attempt) isHanded() bool {
	if a.r != nil {
		return a.r.handed.Load()
	}
	if a.e.handedCount.Load() == 0 {
		return false
	}
	a.e.mu.Lock()
	defer a.e.mu.Unlock()
	_, handed := a.e.handed[a.id]
	return handed
}

// release forgets what the body kept.
func (a Attempt) release() {
	if a.t != nil && a.t.cancel != nil {
		a.t.cancel(context.Canceled)
	}
	if a.r == nil {
		a.e.mu.Lock()
		defer a.e.mu.Unlock()
		delete(a.e.handed, a.id)
		a.e.handedCount.Store(int32(len(a.e.handed)))
	}
}
