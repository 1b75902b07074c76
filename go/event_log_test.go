package nexthop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

const failingMesh = `
clusters:
  web: {hosts: [10.0.0.1:80, 10.0.0.2:80], outlier: {consecutive_5xx: 2, eject: 30s, interval: 10s, max_percent: 100}}
`

// never is longer than any test: rounds are those of the end.
const never = time.Hour

var bothEjected, bothBack = []string{"EJECT", "EJECT"}, []string{"UNEJECT", "UNEJECT"}

func ejectAll(e *Engine) {
	for range 4 {
		must(must(e.ChooseHost("web", 1)).Complete(500, nil))
	}
}

func wantActions(t *testing.T, text []byte, want []string) {
	t.Helper()
	var found []string
	for line := range bytes.Lines(text) {
		var event struct {
			Cluster string `json:"cluster_name"`
			Action  string
		}
		if err := json.Unmarshal(line, &event); err != nil || event.Cluster != "web" {
			t.Fatalf("%s: %v", line, err)
		}
		found = append(found, event.Action)
	}
	if !slices.Equal(found, want) {
		t.Fatalf("%v, not %v", found, want)
	}
}

// logging runs LogEvents; the function it gives waits for its end.
func logging(ctx context.Context, e *Engine, sink EventSink, every time.Duration) (end func() error) {
	ended := make(chan error, 1)
	go func() { ended <- e.LogEvents(ctx, sink, every) }()
	return func() error { return <-ended }
}

// begun waits until a log has made its first round: the events of before are gone.
func begun(t *testing.T, e *Engine) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		e.mu.Lock()
		n := len(e.logs)
		e.mu.Unlock()
		if n > 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("no log began")
		}
	}
}

func TestEventsToAFileThatIsMovedAway(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.jsonl")
	e := manual(t, failingMesh)
	ctx, cancel := context.WithCancel(t.Context())
	end := logging(ctx, e, EventFile(path), never)
	ejectAll(e)
	cancel()
	if err := end(); err != nil {
		t.Fatal(err)
	}
	wantActions(t, must(os.ReadFile(path)), bothEjected)
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	// The end of the engine writes what is left, the ends of ejections whose time is over among it.
	end = logging(t.Context(), e, EventFile(path), never)
	begun(t, e)
	if err := e.Advance(31 * time.Second); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(e.Close(), end()); err != nil {
		t.Fatal(err)
	}
	wantActions(t, must(os.ReadFile(path)), bothBack)
	wantActions(t, must(os.ReadFile(path+".1")), bothEjected)
	wantErr(t, e.LogEvents(t.Context(), EventFile(path), 0), ErrClosed)
}

func TestEventsToALogger(t *testing.T) {
	e := manual(t, failingMesh)
	var text bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&text, nil))
	ctx, cancel := context.WithCancel(t.Context())
	end := logging(ctx, e, EventLogger(logger), never)
	ejectAll(e)
	cancel()
	if err := end(); err != nil {
		t.Fatal(err)
	}
	var events bytes.Buffer
	for line := range bytes.Lines(text.Bytes()) {
		var record struct {
			Level, Msg string
			Event      json.RawMessage
		}
		if err := json.Unmarshal(line, &record); err != nil || record.Level != "INFO" || record.Msg != "nexthop event" {
			t.Fatalf("%s: %v", line, err)
		}
		events.Write(append(record.Event, '\n'))
	}
	wantActions(t, events.Bytes(), bothEjected)
}

func TestALineThatCouldNotBeWrittenComesFirst(t *testing.T) {
	e := manual(t, failingMesh)
	ejectAll(e)
	var text bytes.Buffer
	write, calls, full := EventWriter(&text), 0, errors.New("no space left")
	sink := func(line json.RawMessage) error {
		if calls++; calls == 1 {
			return full
		}
		return write(line)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	// The first round fails, the last one does not.
	if err := e.LogEvents(ctx, sink, never); err != nil {
		t.Fatal(err)
	}
	wantActions(t, text.Bytes(), bothEjected)
	other := manual(t, failingMesh)
	ejectAll(other)
	wantErr(t, other.LogEvents(ctx, func(json.RawMessage) error { return full }, never), full)
}

func TestALogWritesByItself(t *testing.T) {
	e := manual(t, failingMesh)
	var mu sync.Mutex
	var text bytes.Buffer
	came := make(chan struct{}, 2)
	write := EventWriter(&text)
	end := logging(t.Context(), e, func(line json.RawMessage) error {
		mu.Lock()
		defer mu.Unlock()
		defer func() { came <- struct{}{} }()
		return write(line)
	}, time.Millisecond)
	ejectAll(e)
	<-came
	<-came
	if err := errors.Join(e.Close(), end()); err != nil {
		t.Fatal(err)
	}
	wantActions(t, text.Bytes(), bothEjected)
}

func TestWrongEventLogs(t *testing.T) {
	e := manual(t, failingMesh)
	var none context.Context
	sink := EventWriter(&bytes.Buffer{})
	wantErr(t, e.LogEvents(none, sink, 0), ErrInvalid)
	wantErr(t, e.LogEvents(t.Context(), nil, 0), ErrInvalid)
	wantErr(t, e.LogEvents(t.Context(), sink, -1), ErrInvalid)
	wantErr(t, (*Engine)(nil).LogEvents(t.Context(), sink, 0), ErrInvalid)
}
