package nexthop

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

func stream(words string) io.ReadCloser { return io.NopCloser(strings.NewReader(words)) }

// A body before the headers: the mistake shows, and nothing was handed over.
func TestBodyBeforeHeaders(t *testing.T) {
	e := manual(t)
	call := e.Request(Head{Cluster: "checkout"})
	a := must(call.ChooseHost(t.Context()))
	_, err := io.ReadAll(a.Body(stream("words")))
	wantErr(t, err, ErrState)
	says(t, err, "the attempt has no response yet; report its headers before handing over the body")
	if live(t, e) != 1 {
		t.Fatal("the attempt ended")
	}
	call.Close()
	if live(t, e) != 0 {
		t.Fatal("the request was left open")
	}
	stateless := must(e.ChooseHost("plain", 1))
	_, err = io.ReadAll(stateless.Body(stream("words")))
	wantErr(t, err, ErrState)
	stateless.Cancel()
	if live(t, e) != 0 {
		t.Fatal("the attempt was left open")
	}
}

// The body of an attempt that is retried hands nothing over: closing the request ends it.
func TestBodyOfARetriedAttempt(t *testing.T) {
	e := manual(t)
	call := e.Request(Head{Cluster: "checkout"})
	a := must(call.ChooseHost(t.Context()))
	if v := must(a.OnHeaders(503, nil)); !v.Retry() {
		t.Fatal(v)
	}
	if words := must(io.ReadAll(a.Body(stream("words")))); string(words) != "words" {
		t.Fatal(string(words))
	}
	call.Close()
	if live(t, e) != 0 {
		t.Fatal("the request was left open")
	}
}

func TestBodyEndsTheAttempt(t *testing.T) {
	e := manual(t)
	call := e.Request(Head{Cluster: "checkout"})
	a := must(call.ChooseHost(t.Context()))
	_ = must(a.OnHeaders(200, nil))
	body := a.Body(stream("words"))
	call.Close()
	if live(t, e) != 1 {
		t.Fatal("the body's attempt ended with the request")
	}
	must(io.ReadAll(body))
	if live(t, e) != 0 {
		t.Fatal("the end of the body did not end the attempt")
	}
}

func TestTheLastAttemptOfALoopEndsWithIt(t *testing.T) {
	e := manual(t)
	for a, err := range e.Request(Head{Cluster: "checkout"}).Attempts(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		_ = must(a.OnHeaders(200, nil))
	}
	if live(t, e) != 0 {
		t.Fatal("the attempt was left open")
	}
}

func TestUploadsThatAreOverBeforeTheFirstChoice(t *testing.T) {
	e := manual(t)
	running := e.Request(Head{Cluster: "checkout", Body: BodyStreaming})
	over := e.Request(Head{Cluster: "checkout", Body: BodyStreaming})
	over.BodyComplete()
	if a := must(running.ChooseHost(t.Context())); a.Remaining != 0 {
		t.Fatal(a.Remaining)
	}
	if a := must(over.ChooseHost(t.Context())); a.Remaining != 2*time.Second {
		t.Fatal(a.Remaining)
	}
	running.Close()
	over.Close()
}

// A stateless attempt that nobody reports gives its permits back when its lease ends: an hour after the last call about it
// when it has no deadline.
func TestForgottenAttempts(t *testing.T) {
	e := manual(t)
	forgotten := must(e.ChooseHost("narrow", 1))
	if forgotten.Remaining != 0 {
		t.Fatal(forgotten.Remaining)
	}
	for _, step := range []struct {
		by   time.Duration
		left uint64
	}{{time.Hour - time.Second, 1}, {2 * time.Second, 0}} {
		if err := e.Advance(step.by); err != nil {
			t.Fatal(err)
		}
		e.Maintain()
		if n := live(t, e); n != step.left {
			t.Fatalf("%d live", n)
		}
	}
	if _, err := forgotten.Complete(200, nil); !errors.Is(err, ErrEnded) {
		t.Fatal(err)
	}
}

func TestLocalRepliesHaveAStatusLine(t *testing.T) {
	if found := localResponse(nil, LocalReply{Status: 503}).Status; found != "503 Service Unavailable" {
		t.Fatal(found)
	}
}
