package nexthop

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

// Run is the ready-made loop: it calls send for each attempt, waits in between, sends hedges from further goroutines,
// and aborts, through their contexts, those that lost. send reports the attempt; when it does not, an error is given to
// [Attempt.Fail], and nil is a success. The context of send ends with the attempt's time limits, or with the body that
// was handed over. The error of the last attempt is returned, or a [*Refusal], or ctx.Err().
func (r *Request) Run(ctx context.Context, send func(context.Context, Attempt) error) error {
	if ctx == nil {
		return errNoContext
	}
	last, err := r.drive(ctx, func(t *try) { t.err = send(t.ctx, t.Attempt) })
	if err != nil {
		return err
	}
	return last.err
}

// try is an attempt that a loop of this package watches.
type try struct {
	Attempt
	ctx      context.Context
	cancel   context.CancelCauseFunc
	timer    *time.Timer
	begun    time.Time
	err      error
	response *http.Response

	mu      sync.Mutex
	verdict Verdict
	state   tryState
	handed  bool
}

type tryState uint8

const (
	tryOpen tryState = iota
	tryAnswered
	tryEnded
)

var errTimedOut = timedOut{}

// timedOut is the cause of a context whose attempt took too long.
type timedOut struct{}

func (timedOut) Error() string        { return "nexthop: the attempt timed out" }
func (timedOut) Timeout() bool        { return true }
func (timedOut) Is(target error) bool { return target == context.DeadlineExceeded }

func newTry(ctx context.Context, a Attempt) *try {
	t := &try{Attempt: a, begun: time.Now()}
	t.Attempt.t = t
	t.ctx, t.cancel = context.WithCancelCause(ctx)
	if a.Timeout > 0 {
		t.timer = time.AfterFunc(a.Timeout, func() { t.cancel(errTimedOut) })
	}
	return t
}

// note keeps a verdict.
func (t *try) note(v Verdict, answered bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state == tryAnswered {
		// The first verdict decided.
		t.state = tryEnded
		return
	}
	t.verdict, t.state = v, tryEnded
	if answered {
		t.state = tryAnswered
		t.untilBodyEnds()
	}
}

// untilBodyEnds replaces the limit of the headers by that of the whole response.
func (t *try) untilBodyEnds() {
	if t.timer == nil || !t.timer.Stop() {
		return
	}
	if t.Remaining > 0 {
		t.timer.Reset(max(t.Remaining-time.Since(t.begun), 1))
	}
}

func (t *try) last() Verdict {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.verdict
}

func (t *try) stage() (state tryState, handed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state, t.handed
}

func (t *try) handOver() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.handed = true
}

func (t *try) timedOut() bool {
	return t.ctx != nil && errors.Is(context.Cause(t.ctx), errTimedOut)
}

// run sends, and reports what send did not.
func (t *try) run(send func(*try)) {
	finished := false
	defer func() {
		if !finished {
			t.Attempt.cancel() // send panicked
		}
		if _, handed := t.stage(); !handed {
			if t.timer != nil {
				t.timer.Stop()
			}
			t.cancel(context.Canceled)
		}
	}()
	send(t)
	finished = true
	state, handed := t.stage()
	switch {
	case handed || state == tryEnded:
	case t.err != nil:
		_, _ = t.Fail(t.err)
	case state == tryAnswered:
		_ = t.End(nil)
	default:
		_, _ = t.Complete(0, nil)
	}
}

// discard drops the result of an attempt that lost.
func (t *try) discard() {
	t.cancel(context.Canceled)
	if t.response != nil {
		_ = t.response.Body.Close()
	}
}

// drive is the loop: choose, send, retry, hedge.
func (r *Request) drive(ctx context.Context, send func(*try)) (*try, error) {
	d := drive{r: r, send: send, done: make(chan *try)}
	defer d.abort()
	listening := false
	for {
		a, w, err := r.TryChooseHost()
		if err == nil && w.For > 0 && !listening {
			r.listen()
			defer r.unlisten()
			listening = true
			continue
		}
		if err != nil {
			return nil, err
		}
		again := w.For
		if w.For == 0 {
			t := newTry(ctx, a)
			if a.HedgeAfter == 0 && len(d.flying) == 0 {
				t.run(send)
				if t.last().Action != Retry {
					return t, nil
				}
				continue
			}
			d.launch(t)
			again = a.HedgeAfter
			if again == 0 {
				again = forever
			}
			if !listening {
				r.listen()
				defer r.unlisten()
				listening = true
			}
		}
		last, err := d.await(ctx, again)
		if last != nil || err != nil {
			return last, err
		}
	}
}

// drive is what is in flight.
type drive struct {
	r      *Request
	send   func(*try)
	flying []*try
	done   chan *try
}

func (d *drive) launch(t *try) {
	d.flying = append(d.flying, t)
	go func() {
		t.run(d.send)
		d.done <- t
	}()
}

// await waits until choosing again makes sense, or an attempt is final.
func (d *drive) await(ctx context.Context, again time.Duration) (*try, error) {
	if d.r.e.manual || again > longestWait {
		again = longestWait
	}
	timer := time.NewTimer(again)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			d.r.Close()
			return nil, ctx.Err()
		case <-d.r.bell:
			return nil, nil
		case <-timer.C:
			return nil, nil
		case t := <-d.done:
			d.landed(t)
			switch t.last().Action {
			case Retry:
				return nil, nil
			case Discard:
				t.discard()
				if len(d.flying) == 0 {
					return nil, nil
				}
			default:
				return t, nil
			}
		}
	}
}

func (d *drive) landed(t *try) {
	for i, other := range d.flying {
		if other == t {
			d.flying = append(d.flying[:i], d.flying[i+1:]...)
			return
		}
	}
}

// abort drops what is still in flight, without waiting for it.
func (d *drive) abort() {
	if len(d.flying) == 0 {
		return
	}
	for _, t := range d.flying {
		t.cancel(context.Canceled)
	}
	go func(n int) {
		for range n {
			(<-d.done).discard()
		}
	}(len(d.flying))
}
