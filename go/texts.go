package nexthop

// #include "nexthop.h"
import "C"

import (
	"encoding/json"
	"io"
	"runtime"
	"strconv"
)

// Explanation tells how a decision came about, as the library's JSON does.
type Explanation map[string]any

// Explain tells what would be decided for a head; it decides and counts nothing.
func (e *Engine) Explain(h Head) (Explanation, error) {
	head := map[string]any{}
	for key, value := range map[string]string{
		"cluster": h.Cluster, "route": h.Route, "method": h.Method, "scheme": h.Scheme, "authority": h.Authority,
		"path": h.Path, "source": h.Source, "local": h.Local, "override_host": h.OverrideHost,
	} {
		if value != "" {
			head[key] = value
		}
	}
	if h.Key != nil {
		head["key"] = string(h.Key)
	}
	if h.Metadata != nil {
		head["metadata"] = h.Metadata
	}
	if h.FilterMetadata != nil {
		head["filter_metadata"] = h.FilterMetadata
	}
	if h.Header != nil && e.made() {
		headers := map[string][]string{}
		for _, name := range e.wantedOfRequests().names {
			if values := h.Header.Values(name); len(values) > 0 {
				headers[name] = values
			}
		}
		head["headers"] = headers
	}
	text, err := json.Marshal(head)
	if err != nil {
		return nil, &UsageError{ErrInvalid, "metadata is no JSON object: " + err.Error()}
	}
	return e.explanation(C.NEXTHOP_TEXT_EXPLAIN, string(text))
}

// Explain tells why this attempt was chosen: the whole trail when its head asked for it, else one line.
func (a Attempt) Explain() Explanation {
	if a.e == nil {
		return nil
	}
	explanation, err := a.e.explanation(C.NEXTHOP_TEXT_EXPLAIN_ATTEMPT, strconv.FormatUint(a.id, 10))
	if err != nil {
		return nil
	}
	return explanation
}

func (e *Engine) explanation(what C.uint32_t, argument string) (Explanation, error) {
	text, err := e.text(what, argument)
	if err != nil {
		return nil, err
	}
	explanation := Explanation{}
	if err := json.Unmarshal(text, &explanation); err != nil {
		return nil, &UsageError{ErrInternal, "an explanation is no JSON: " + err.Error()}
	}
	return explanation, nil
}

// Effective tells every number in force for a cluster ("name") or route ("route:NAME"), and where it came from, as JSON.
func (e *Engine) Effective(name string) (json.RawMessage, error) {
	return e.text(C.NEXTHOP_TEXT_EFFECTIVE, name)
}

// LoadReport tells what the present documents said and what was not understood, as JSON.
func (e *Engine) LoadReport() (json.RawMessage, error) { return e.text(C.NEXTHOP_TEXT_LOAD_REPORT, "") }

// WholeLoadReport tells every field: used, absent and whose default acts, not used here and why, as JSON.
func (e *Engine) WholeLoadReport() (json.RawMessage, error) {
	return e.text(C.NEXTHOP_TEXT_LOAD_REPORT, "all")
}

// Lint tells what is doubtful in the present documents, as JSON.
func (e *Engine) Lint() (json.RawMessage, error) { return e.text(C.NEXTHOP_TEXT_LINT_JSON, "") }

// Hosts are the hosts of a cluster, or of all for "", as JSON.
func (e *Engine) Hosts(cluster string) (json.RawMessage, error) {
	return e.text(C.NEXTHOP_TEXT_HOSTS, cluster)
}

// StatsJSON are all numbers, as JSON.
func (e *Engine) StatsJSON() (json.RawMessage, error) { return e.text(C.NEXTHOP_TEXT_STATS, "") }

// Stats hands out all numbers; names are the keys of StatsJSON joined by dots. It can be ranged over.
func (e *Engine) Stats(yield func(name string, value float64) bool) {
	text, err := e.StatsJSON()
	if err != nil {
		return
	}
	var all any
	if json.Unmarshal(text, &all) == nil {
		flatten("", all, yield)
	}
}

func flatten(name string, value any, yield func(string, float64) bool) bool {
	prefix := name
	if prefix != "" {
		prefix += "."
	}
	switch value := value.(type) {
	case float64:
		return yield(name, value)
	case map[string]any:
		for key, inner := range value {
			if !flatten(prefix+key, inner, yield) {
				return false
			}
		}
	case []any:
		for i, inner := range value {
			if !flatten(prefix+strconv.Itoa(i), inner, yield) {
				return false
			}
		}
	}
	return true
}

// A Metric is one number of an engine.
type Metric struct {
	// Such as cluster.upstream_rq.
	Name string `json:"name"`
	// "counter": it only grows; or "gauge".
	Type  string `json:"type"`
	Value uint64 `json:"value"`
	// Such as envoy.cluster_name.
	Attributes map[string]string `json:"attributes"`
}

// Metrics gives all numbers with their kinds and attributes, as OpenTelemetry and others want them.
func (e *Engine) Metrics() ([]Metric, error) {
	text, err := e.text(C.NEXTHOP_TEXT_METRICS, "")
	if err != nil {
		return nil, err
	}
	var all []Metric
	err = json.Unmarshal(text, &all)
	return all, err
}

// Prometheus writes all numbers in Prometheus' text format.
func (e *Engine) Prometheus(w io.Writer) error {
	text, err := e.text(C.NEXTHOP_TEXT_PROMETHEUS, "")
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// Events takes what an operator may want to know, oldest first, each a JSON object.
func (e *Engine) Events() ([]json.RawMessage, error) {
	if !e.made() {
		return nil, errNoEngine
	}
	var events []json.RawMessage
	for {
		line, err := e.event()
		if err != nil || len(line) == 0 {
			return events, err
		}
		events = append(events, line)
	}
}

// event takes the oldest event; empty when there is none.
func (e *Engine) event() (json.RawMessage, error) {
	defer runtime.KeepAlive(e)
	return text(func(buf *C.char, n C.size_t, needed *C.size_t) C.nexthop_status {
		return C.nexthop_poll_event(e.id, buf, n, needed)
	})
}

func (e *Engine) text(what C.uint32_t, argument string) ([]byte, error) {
	if !e.made() {
		return nil, errNoEngine
	}
	defer runtime.KeepAlive(e)
	var pin runtime.Pinner
	defer pin.Unpin()
	given := cString(&pin, argument)
	return text(func(buf *C.char, n C.size_t, needed *C.size_t) C.nexthop_status {
		return C.nexthop_text(e.id, what, given, buf, n, needed)
	})
}
