package nexthop

import (
	"sync"
	"testing"
	"time"
)

const strict = `clusters: {b: {hosts: ["10.0.0.1:80"], limits: {connections: 2, pending: 2}, timeout: 0s, nexthop: {connections: strict}}}`

func TestAConnectionLetsAWaiterGoOn(t *testing.T) {
	e := manual(t, strict)
	var waits []*Request
	refused := 0
	for range 20 {
		r := e.Request(Head{Cluster: "b"})
		_, w, err := r.TryChooseHost()
		if err != nil {
			wantErr(t, err, ErrOverflow)
			refused++
		} else if w.For != 0 {
			waits = append(waits, r)
		}
	}
	if len(waits) != 2 || refused != 18 {
		t.Fatal(len(waits), refused)
	}
	for _, r := range waits {
		if err := r.Note(NoteConnected); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range waits {
		a, w, err := r.TryChooseHost()
		if err != nil || w.For != 0 {
			t.Fatal(w, err)
		}
		for _, note := range []Note{NoteSent, NoteInterim} {
			if err := a.Note(note); err != nil {
				t.Fatal(err)
			}
		}
		if v := must(a.Complete(200, nil)); v.Retry() {
			t.Fatalf("%+v", v)
		}
		if err := a.Note(NoteSent); err != nil {
			t.Fatal("the attempt has ended:", err)
		}
	}
	if live(t, e) != 0 {
		t.Fatal("requests are left")
	}
}

func TestAConnectionWakesWhoSleeps(t *testing.T) {
	e := manual(t, strict)
	begin := time.Now()
	var all sync.WaitGroup
	for range 2 {
		r := e.Request(Head{Cluster: "b"})
		if _, w, err := r.TryChooseHost(); err != nil || w.Reason != WaitQueue {
			t.Fatal(w, err)
		}
		spawn(&all, func() {
			a := must(r.ChooseHost(t.Context()))
			_ = must(a.Complete(200, nil))
		})
		if err := r.Note(NoteConnected); err != nil {
			t.Fatal(err)
		}
	}
	all.Wait()
	if time.Since(begin) > 900*time.Millisecond {
		t.Fatal("asked back, not woken")
	}
}

func TestWrongNotesAreUsageErrors(t *testing.T) {
	e := manual(t, strict)
	r := e.Request(Head{Cluster: "b"})
	wantErr(t, r.Note(NoteConnected), ErrState)
	wantErr(t, Attempt{}.Note(NoteSent), ErrInvalid)
	if _, w, err := r.TryChooseHost(); err != nil || w.For == 0 {
		t.Fatal(w, err)
	}
	wantErr(t, r.Note(99), ErrInvalid)
	if err := r.Note(NoteConnected); err != nil {
		t.Fatal(err)
	}
	a := must(r.ChooseHost(t.Context()))
	wantErr(t, a.Note(0), ErrInvalid)
	if NoteRetryAbandoned.String() != "retry_abandoned" {
		t.Fatal(NoteRetryAbandoned)
	}
	_ = must(a.Complete(200, nil))
}
