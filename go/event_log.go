package nexthop

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"
)

// EventSink takes one event, a JSON object without a line end. It is called by one goroutine at a time.
type EventSink func(line json.RawMessage) error

// EventWriter is a sink that writes lines.
func EventWriter(w io.Writer) EventSink {
	return func(line json.RawMessage) error {
		// In one piece: others may write to the same file.
		_, err := w.Write(append(line[:len(line):len(line)], '\n'))
		return err
	}
}

// EventFile is a sink that appends lines to a file, made when it is not there. It is opened for each line, so that whoever
// rotates logs needs to tell nobody.
func EventFile(path string) EventSink {
	return func(line json.RawMessage) error {
		file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		return errors.Join(EventWriter(file)(line), file.Close())
	}
}

// EventLogger is a sink that gives each event to a logger, at level INFO with the attribute "event".
func EventLogger(logger *slog.Logger) EventSink {
	return func(line json.RawMessage) error {
		logger.LogAttrs(context.Background(), slog.LevelInfo, "nexthop event", slog.Any("event", line))
		return nil
	}
}

// eventLog is a running LogEvents.
type eventLog struct {
	mu   sync.Mutex
	sink EventSink
	kept json.RawMessage // the sink failed on it
	err  error           // of the last round
	over chan struct{}   // Close has made the last round
}

// LogEvents runs due maintenance every so often (0: every second) and hands each event to a sink, until the context is
// done or the engine is closed, either of which writes what is left. Mostly called as go mesh.LogEvents(...).
//
// A line whose sink fails is kept and handed over again in the next round; LogEvents returns the last round's error.
// ErrInvalid for a nil context or sink, or a negative time; ErrClosed when the engine was closed before. Two logs of one
// engine share its events.
func (e *Engine) LogEvents(ctx context.Context, sink EventSink, every time.Duration) error {
	switch {
	case !e.made():
		return errNoEngine
	case ctx == nil || sink == nil:
		return &UsageError{ErrInvalid, "the context or the sink is nil"}
	case every < 0:
		return &UsageError{ErrInvalid, "the time between two rounds is negative; 0 is one second"}
	case every == 0:
		every = time.Second
	}
	log := &eventLog{sink: sink, over: make(chan struct{})}
	e.mu.Lock()
	if e.logs == nil {
		e.logs = map[*eventLog]struct{}{}
	}
	e.logs[log] = struct{}{}
	e.mu.Unlock()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		if err := log.round(e); errors.Is(err, ErrClosed) {
			e.forget(log)
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			e.forget(log)
			return log.round(e)
		case <-log.over:
			return log.err
		}
	}
}

func (e *Engine) forget(log *eventLog) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.logs, log)
}

// endLogs makes the last round of every log.
func (e *Engine) endLogs() {
	e.mu.Lock()
	logs := e.logs
	e.logs = nil
	e.mu.Unlock()
	for log := range logs {
		log.err = log.round(e)
		close(log.over)
	}
}

// round hands out what there is.
func (log *eventLog) round(e *Engine) error {
	log.mu.Lock()
	defer log.mu.Unlock()
	// Sweeps and the ends of ejections happen here when no request makes them happen.
	e.Maintain()
	for {
		if log.kept == nil {
			line, err := e.event()
			if err != nil || len(line) == 0 {
				return err
			}
			log.kept = line
		}
		if err := log.sink(log.kept); err != nil {
			return err
		}
		log.kept = nil
	}
}
