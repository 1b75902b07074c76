package nexthop

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"
)

func TestRetryLoop(t *testing.T) {
	e := manual(t)
	r := e.Request(Head{Cluster: "checkout", Path: "/pay"})
	first := must(r.ChooseHost(t.Context()))
	if first.Number != 1 || first.Remaining != 2*time.Second || first.URL("") != "http://10.0.0.1/pay" || first.URL("x") != "http://10.0.0.1/x" {
		t.Fatalf("%+v %s", first, first.URL(""))
	}
	_, err := r.ChooseHost(t.Context())
	wantErr(t, err, ErrState)
	v := must(first.Complete(503, nil))
	if !v.Retry() || v.Status != 503 {
		t.Fatalf("%+v", v)
	}
	_, w, err := r.TryChooseHost()
	if err != nil || w.Reason != WaitBackoff || w.For <= 0 || w.For > v.After {
		t.Fatal(w, err)
	}
	if err := e.Advance(w.For); err != nil {
		t.Fatal(err)
	}
	second := must(r.ChooseHost(t.Context()))
	if second.Number != 2 || second.Host == first.Host {
		t.Fatalf("%+v", second)
	}
	if v := must(second.Complete(200, nil)); v.Action != Forward || v.Reason.String() != "success" {
		t.Fatalf("%+v", v)
	}
	if live(t, e) != 0 {
		t.Fatal("the request is done")
	}
	_, err = second.Complete(200, nil)
	wantErr(t, err, ErrEnded)
	var usage *UsageError
	if !errors.As(err, &usage) || len(usage.Error()) < 20 {
		t.Fatal(err)
	}
	second.Cancel()
	if err := second.End(nil); err != nil {
		t.Fatal(err)
	}
	r.Close()
	_, err = r.ChooseHost(t.Context())
	wantErr(t, err, ErrEnded)
}

// The waiting call returns when the clock moves, not before.
func TestBackoffWaitsForTheClock(t *testing.T) {
	e := manual(t)
	r := e.Request(Head{Cluster: "checkout"})
	v := must(must(r.ChooseHost(t.Context())).Complete(503, nil))
	done := make(chan Attempt)
	go func() { done <- must(r.ChooseHost(t.Context())) }()
	waitFor(t, e, 1)
	select {
	case <-done:
		t.Fatal("chosen during back-off")
	default:
	}
	if err := e.Advance(v.After); err != nil {
		t.Fatal(err)
	}
	if a := <-done; a.Number != 2 {
		t.Fatal(a.Number)
	}
	r.Close()
}

// waitFor returns when so many requests sleep.
func waitFor(t *testing.T, e *Engine, n int) {
	t.Helper()
	for until := time.Now().Add(10 * time.Second); time.Now().Before(until); runtime.Gosched() {
		e.mu.Lock()
		now := len(e.waiting)
		e.mu.Unlock()
		if now == n {
			return
		}
	}
	t.Fatal("nobody waits")
}

func TestQueueIsWokenByReports(t *testing.T) {
	e := manual(t)
	holder := e.Request(Head{Cluster: "narrow"})
	held := must(holder.ChooseHost(t.Context()))
	r := e.Request(Head{Cluster: "narrow"})
	done := make(chan Attempt)
	go func() { done <- must(r.ChooseHost(t.Context())) }()
	waitFor(t, e, 1)
	begun := time.Now()
	must(held.Complete(200, nil))
	a := <-done
	if waited := time.Since(begun); waited > longestWait/2 {
		t.Fatal("found out by asking, not by being woken:", waited)
	}
	must(a.Complete(200, nil))
	if live(t, e) != 0 || len(e.waiting) != 0 {
		t.Fatal("something is left")
	}
}

func TestContextEndsAQueuedRequest(t *testing.T) {
	e := manual(t)
	held := must(e.Request(Head{Cluster: "narrow"}).ChooseHost(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	r := e.Request(Head{Cluster: "narrow"})
	failed := make(chan error)
	go func() {
		_, err := r.ChooseHost(ctx)
		failed <- err
	}()
	waitFor(t, e, 1)
	cancel()
	wantErr(t, <-failed, context.Canceled)
	if live(t, e) != 1 {
		t.Fatal("its place is given up")
	}
	_, err := r.ChooseHost(t.Context())
	wantErr(t, err, ErrEnded)
	must(held.Complete(200, nil))
	if live(t, e) != 0 {
		t.Fatal("something is left")
	}
}

func TestRefusals(t *testing.T) {
	e := manual(t)
	must(e.Request(Head{Cluster: "narrow"}).ChooseHost(t.Context()))
	queued := e.Request(Head{Cluster: "narrow"})
	if _, w, err := queued.TryChooseHost(); err != nil || w.Reason != WaitQueue {
		t.Fatal(w, err)
	}
	over := e.Request(Head{Cluster: "narrow"})
	_, err := over.ChooseHost(t.Context())
	wantErr(t, err, ErrOverflow)
	var refused *Refusal
	if !errors.As(err, &refused) || refused.Resource != ResourcePending || refused.Reply.Status != 503 || refused.Reply.Headers["x-envoy-overloaded"] != "true" {
		t.Fatalf("%+v", refused)
	}
	if refused.Reply.Flags.String() != "UO" || refused.Reply.Details == "" {
		t.Fatalf("%+v", refused.Reply)
	}
	queued.Close()

	_, err = e.Request(Head{Cluster: "chekout"}).ChooseHost(t.Context())
	wantErr(t, err, ErrNoCluster)
	_, err = e.Request(Head{Authority: "nowhere.example", Path: "/"}).ChooseHost(t.Context())
	wantErr(t, err, ErrNoRoute)
	if !errors.As(err, &refused) || refused.Reply.Status != 404 {
		t.Fatal(err)
	}
	_, err = e.ChooseHost("providers", 3)
	wantErr(t, err, ErrNoHealthyUpstream)
	if !errors.As(err, &refused) || refused.Resource.String() != "past_last_sub_cluster" {
		t.Fatal(err)
	}
}

func TestRoutesAndInfo(t *testing.T) {
	e := manual(t)
	r := e.Request(Head{Authority: "shop.example", Path: "/pay/now", Method: "POST", Header: http.Header{"X-User": {"42"}}})
	a := must(r.ChooseHost(t.Context()))
	info := must(r.Info())
	if info.Cluster != "checkout" || a.Host.Cluster != "checkout" {
		t.Fatal(info)
	}
	if x := a.Explain(); len(x) == 0 {
		t.Fatal("no explanation")
	}
	a.Cancel()
	a.Cancel()
	if live(t, e) != 0 {
		t.Fatal("dropping the only attempt ends the request")
	}
}

func TestStateless(t *testing.T) {
	e := manual(t)
	if a := must(e.ChooseHost("providers", 2)); a.Host.Cluster != "second" || a.Number != 2 {
		t.Fatalf("%+v", a)
	} else if v := must(a.Complete(200, nil)); v.Retry() {
		t.Fatal(v)
	}
	_, err := e.ChooseHost("providers", 0)
	wantErr(t, err, ErrNoHealthyUpstream)
	_, err = e.ChooseHost("providers", 0, WithTried("10.0.0.1:80"))
	wantErr(t, err, ErrInvalid)
	key := []byte("user-7")
	host := must(e.ChooseHost("hashed", 1, WithKey(key))).Host
	for range 20 {
		a := must(e.ChooseHost("hashed", 1, WithKey(key)))
		if a.Host != host {
			t.Fatal("the same key, another host")
		}
		must(a.Complete(200, nil))
	}
	// Headers hash as well.
	hosts := map[*Host]bool{}
	for _, user := range []string{"1", "2", "3", "4", "5", "6", "7", "8", "9"} {
		head := Head{Header: http.Header{"X-User": {user}}}
		one, two := must(e.ChooseHost("hashed", 1, WithHead(head))), must(e.ChooseHost("hashed", 1, WithHead(head)))
		if one.Host != two.Host {
			t.Fatal("the same user, another host")
		}
		hosts[one.Host] = true
		one.Cancel()
		two.Cancel()
	}
	if len(hosts) < 2 {
		t.Fatal("all users on one host")
	}
	must(e.ChooseHost("checkout", 2, WithTried("10.0.0.1:80", "10.0.0.2:80"))).Cancel()
}

func TestWrongUse(t *testing.T) {
	e := manual(t)
	for _, status := range []int{-1, 99, 1000, 65736, 1 << 40} {
		a := must(e.ChooseHost("plain", 1))
		_, err := a.Complete(status, nil)
		wantErr(t, err, ErrInvalid)
		_, err = a.OnHeaders(status, http.Header{})
		wantErr(t, err, ErrInvalid)
		must(a.Complete(0, nil))
	}
	a := must(e.ChooseHost("plain", 1))
	wantErr(t, a.End(nil), ErrState)
	must(a.OnHeaders(200, http.Header{}))
	_, err := a.OnHeaders(200, nil)
	wantErr(t, err, ErrState)
	if err := a.End(&Outcome{Header: http.Header{}, Bytes: 12}); err != nil {
		t.Fatal(err)
	}
	_, err = a.Report(Outcome{Latency: -1})
	wantErr(t, err, ErrInvalid)
	_, err = Attempt{}.Complete(200, nil)
	wantErr(t, err, ErrInvalid)
	_, err = Attempt{}.Report(Outcome{Status: 200})
	wantErr(t, err, ErrInvalid)
	Attempt{}.Cancel()
	_, err = e.Request(Head{Cluster: "plain", Timeout: -1}).ChooseHost(t.Context())
	wantErr(t, err, ErrInvalid)
	_, err = e.Request(Head{Cluster: "plain\xff"}).ChooseHost(t.Context())
	wantErr(t, err, ErrInvalid)
	_, err = e.Request(Head{Cluster: "plain", Path: string(make([]byte, 61<<10))}).ChooseHost(t.Context())
	wantErr(t, err, ErrLimit)
	_, err = e.Request(Head{Cluster: "plain", Metadata: map[string]any{"a": func() {}}}).ChooseHost(t.Context())
	wantErr(t, err, ErrInvalid)
	never := e.Request(Head{Cluster: "plain"})
	never.Close()
	_, err = never.ChooseHost(t.Context())
	wantErr(t, err, ErrEnded)
	wantErr(t, e.Advance(-1), ErrInvalid)
	if live(t, e) != 0 {
		t.Fatal("errors change nothing")
	}
}

func TestExactlyOneReportWins(t *testing.T) {
	e := manual(t)
	for range 200 {
		a := must(e.ChooseHost("plain", 1))
		var wins, losses int
		var mu sync.Mutex
		var all sync.WaitGroup
		for i := range 8 {
			spawn(&all, func() {
				var err error
				if i%2 == 0 {
					_, err = a.Complete(200, nil)
				} else {
					_, err = a.Fail(RemoteReset)
				}
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					wins++
				} else if errors.Is(err, ErrEnded) {
					losses++
				}
			})
		}
		all.Wait()
		if wins != 1 || losses != 7 {
			t.Fatal(wins, losses)
		}
	}
}

func TestStress(t *testing.T) {
	e := must(New(Options{Clock: ClockPrecise}, Document{Text: mesh}))
	defer e.Close()
	var all sync.WaitGroup
	for g := range 16 {
		spawn(&all, func() {
			for i := range 400 {
				cluster := []string{"checkout", "narrow", "first", "hashed"}[(g+i)%4]
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i%5+1)*10*time.Millisecond)
				r := e.Request(Head{Cluster: cluster, Path: "/", Header: http.Header{"X-User": {"1"}}})
				a, err := r.ChooseHost(ctx)
				if err == nil {
					switch i % 6 {
					case 0:
						_, err = a.Complete(503, http.Header{})
					case 1:
						_, err = a.OnHeaders(200, http.Header{})
						_ = a.End(nil)
					case 2:
						_, err = a.Fail(ConnectFailure)
					case 3:
						a.Cancel()
					default:
						_, err = a.Complete(200, nil)
					}
					if err != nil {
						t.Error(err)
					}
				} else if !errors.As(err, new(*Refusal)) && ctx.Err() == nil {
					t.Error(err)
				}
				r.Close()
				cancel()
				if i%50 == 0 {
					_, _ = e.SetHosts("first", []HostSpec{{Address: "10.0.2.1:80"}, {Address: "10.0.2.2:80", Weight: uint32(i + 1)}})
				}
			}
		})
	}
	all.Wait()
	if n := live(t, e); n != 0 {
		t.Fatal(n, "requests are left")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.waiting) != 0 {
		t.Fatal("somebody still waits")
	}
}

// A request that is dropped, and has no deadline, is finished by the collector.
func TestDroppedWithoutDeadline(t *testing.T) {
	e := manual(t)
	func() {
		a := must(e.Request(Head{Cluster: "narrow"}).ChooseHost(t.Context()))
		if a.Remaining != 0 {
			t.Fatal("this cluster has no time limit")
		}
	}()
	for until := time.Now().Add(10 * time.Second); live(t, e) != 0 && time.Now().Before(until); runtime.Gosched() {
		runtime.GC()
	}
	if live(t, e) != 0 {
		t.Fatal("still alive")
	}
}

func TestAttemptsLoop(t *testing.T) {
	e := must(New(Options{Clock: ClockPrecise}, Document{Text: mesh}))
	defer e.Close()
	var numbers []int
	for a, err := range e.Request(Head{Cluster: "checkout"}).Attempts(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, a.Number)
		status := 503
		if a.Number == 3 {
			status = 200
		}
		must(a.Complete(status, nil))
	}
	if len(numbers) != 3 {
		t.Fatal(numbers)
	}
	// Unreported: cancelled, and over. Left early: likewise.
	rounds := 0
	for range e.Request(Head{Cluster: "checkout"}).Attempts(t.Context()) {
		rounds++
	}
	for range e.Request(Head{Cluster: "checkout"}).Attempts(t.Context()) {
		rounds++
		break
	}
	if rounds != 2 || live(t, e) != 0 {
		t.Fatal(rounds, live(t, e))
	}
	for _, err := range e.Request(Head{Cluster: "none"}).Attempts(t.Context()) {
		wantErr(t, err, ErrNoCluster)
	}
}
