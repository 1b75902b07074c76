package nexthop

import (
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Everything at once (tests/stress), with goroutines that wait for their turn.
func TestEverythingAtOnce(t *testing.T) {
	const workers, each, requests = 12, 300, 6
	clusters := [2]string{"web", "narrow"}
	documents := [2]string{filepath.Join("..", "tests", "stress", "first.yaml"), filepath.Join("..", "tests", "stress", "second.yaml")}
	e := must(FromFile(documents[0]))
	defer e.Close()
	var open [2]atomic.Int32
	var answered atomic.Int32
	// Ends an attempt somehow; whether a retry follows.
	report := func(which int, a Attempt, random *rand.Rand) bool {
		if open[which].Add(1) > requests {
			t.Error("over the limit")
		}
		runtime.Gosched()
		open[which].Add(-1)
		switch random.IntN(8) {
		case 0, 1:
			return must(a.Complete(503, nil)).Retry()
		case 2:
			return must(a.Fail(ConnectFailure)).Retry()
		case 3:
			must(a.OnHeaders(200, nil))
			if err := a.End(nil); err != nil {
				t.Error(err)
			}
		case 4:
			a.Cancel()
		default:
			must(a.Complete(200, nil))
		}
		return false
	}
	one := func(random *rand.Rand) {
		which := random.IntN(2)
		r := e.Request(Head{Cluster: clusters[which]})
		defer r.Close()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if random.IntN(5) == 0 {
			go cancel() // gone, perhaps while it waits
		}
		for retry := true; retry; {
			a, err := r.ChooseHost(ctx)
			switch {
			case err == nil:
				retry = report(which, a, random)
				continue
			case !errors.Is(err, context.Canceled) && !errors.Is(err, ErrOverflow):
				t.Error(err)
			}
			return
		}
	}
	var all, updates sync.WaitGroup
	over := make(chan struct{})
	spawn(&updates, func() {
		for at := 1; ; at++ {
			select {
			case <-over:
				return
			default:
				must(e.UpdateFile(documents[at%2]))
				runtime.Gosched()
			}
		}
	})
	for g := range workers {
		spawn(&all, func() {
			random := rand.New(rand.NewPCG(uint64(g), 1))
			for range each {
				one(random)
				answered.Add(1)
			}
		})
	}
	all.Wait()
	close(over)
	updates.Wait()
	if n := answered.Load(); n != workers*each {
		t.Fatal(n, "were answered")
	}
	if n := live(t, e); n != 0 {
		t.Fatal(n, "requests are left")
	}
	gauges := 0
	e.Stats(func(name string, value float64) bool {
		for _, leaf := range []string{".upstream_rq_active", ".upstream_rq_pending_active", ".rq_open", ".rq_pending_open", ".rq_retry_open"} {
			if strings.HasSuffix(name, leaf) {
				gauges++
				if value != 0 {
					t.Error(name, "is", value)
				}
			}
		}
		return true
	})
	if gauges < 10 {
		t.Fatal(gauges, "gauges")
	}
	for _, cluster := range clusters {
		r := e.Request(Head{Cluster: cluster})
		a, wait, err := r.TryChooseHost()
		if err != nil || wait.For != 0 {
			t.Fatal(cluster, "is stuck:", wait, err)
		}
		must(a.Complete(200, nil))
		r.Close()
	}
}
