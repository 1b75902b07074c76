package nexthop

// #include "shim.h"
// #cgo noescape nexthop_go_begin
// #cgo nocallback nexthop_go_begin
import "C"

import (
	"encoding/json"
	"strconv"
	"time"
	"unsafe"
)

// Priority of a request towards the limits of its cluster.
type Priority uint8

// Priorities.
const (
	PriorityOfRoute Priority = 0
	PriorityDefault Priority = 1
	PriorityHigh    Priority = 2
)

// Body tells whether a request's body can be sent again.
type Body uint8

// Bodies.
const (
	BodyNone       Body = 0
	BodyReplayable Body = 1
	BodyOnce       Body = 2 // after anything that may have sent bytes there is no retry
	BodyStreaming  Body = 3 // the upload still runs; call BodyComplete when it is over
)

// Head is what a request is made from. Cluster, or Route, or neither: then authority, path, method and headers are
// matched with the route tables.
type Head struct {
	Cluster        string
	Route          string // "NAME" or "VHOST/NAME"
	Method         string // GET
	Scheme         string // http
	Authority      string
	Path           string // with its query
	Header         Header
	Source, Local  string         // "ip" or "ip:port"
	Key            []byte         // replaces every hash policy when not nil
	Hash           *uint64        // replaces the hash itself
	Metadata       map[string]any // envoy.lb criteria
	FilterMetadata map[string]any // other namespaces
	OverrideHost   string         // "ip:port"; "!" before it: that one or none
	Timeout        time.Duration  // the caller's own limit; 0: none
	Priority       Priority
	Body           Body
	Replay         bool // a streamed body can be sent again
	Internal       bool // x-envoy-* request headers count
	Explain        bool // keep the whole reason trail of each decision
}

// target is the name that the head gives to a cluster or route; empty for neither.
func (h *Head) target() string {
	if h.Route != "" {
		return "route:" + h.Route
	}
	return h.Cluster
}

// begin makes a request and its first choice. number and tried are those of a stateless pick, else 0 and "".
func (e *Engine) begin(h *Head, number uint32, tried string, out *C.nexthop_decision) (C.nexthop_status, error) {
	if !e.made() {
		return 0, errNoEngine
	}
	var from C.nexthop_go_head
	if h.Cluster != "" && h.Route != "" {
		return 0, &UsageError{ErrInvalid, "both a cluster and a route are named; name one of them"}
	}
	switch {
	case h.Cluster != "":
		target, err := e.target(h.Cluster)
		if err != nil {
			return 0, err
		}
		from.target = C.uint32_t(target)
	case h.Route != "":
		target, err := e.target("route:" + h.Route)
		if err != nil {
			return 0, err
		}
		from.target = C.uint32_t(target)
	}
	if h.Timeout < 0 {
		return 0, &UsageError{ErrInvalid, "the timeout is " + h.Timeout.String() + "; 0 is no limit"}
	}
	if h.Priority > PriorityHigh {
		return 0, &UsageError{ErrInvalid, "the priority of a request is " + strconv.Itoa(int(h.Priority)) + ", no Priority... constant"}
	}
	from.number = C.uint32_t(number)
	from.priority = C.int32_t(h.Priority) - 1
	from.body = C.uint32_t(h.Body)
	from.timeout = C.uint64_t(h.Timeout)
	if h.Internal {
		from.bits |= C.NEXTHOP_HEAD_INTERNAL
	}
	if h.Explain {
		from.bits |= C.NEXTHOP_HEAD_EXPLAIN
	}
	if h.Replay {
		from.bits |= C.NEXTHOP_HEAD_REPLAY
	}
	if h.Hash != nil {
		from.bits |= C.NEXTHOP_HEAD_HASH
		from.hash = C.uint64_t(*h.Hash)
	}
	// Most heads fit, and then nothing is allocated.
	var room [512]byte
	text := append(room[:0], h.Method...)
	at := 0
	from.len[C.GO_METHOD], at = C.uint32_t(len(text)-at), len(text)
	text = append(text, h.Scheme...)
	from.len[C.GO_SCHEME], at = C.uint32_t(len(text)-at), len(text)
	text = append(text, h.Authority...)
	from.len[C.GO_AUTHORITY], at = C.uint32_t(len(text)-at), len(text)
	text = append(text, h.Path...)
	from.len[C.GO_PATH], at = C.uint32_t(len(text)-at), len(text)
	if h.Header != nil {
		set := e.wantedOfRequests()
		from.want = C.uint32_t(set.number)
		text = set.pack(text, h.Header)
	}
	from.len[C.GO_HEADERS], at = C.uint32_t(len(text)-at), len(text)
	text = append(text, h.Source...)
	from.len[C.GO_SOURCE], at = C.uint32_t(len(text)-at), len(text)
	text = append(text, h.Local...)
	from.len[C.GO_LOCAL], at = C.uint32_t(len(text)-at), len(text)
	if h.Key == nil {
		from.len[C.GO_KEY] = C.GO_ABSENT
	} else {
		text = append(text, h.Key...)
		from.len[C.GO_KEY], at = C.uint32_t(len(text)-at), len(text)
	}
	text = append(text, tried...)
	from.len[C.GO_TRIED], at = C.uint32_t(len(text)-at), len(text)
	text = append(text, h.OverrideHost...)
	from.len[C.GO_OVERRIDE], at = C.uint32_t(len(text)-at), len(text)
	text, err := appendJSON(text, h.Metadata)
	if err != nil {
		return 0, err
	}
	from.len[C.GO_METADATA], at = C.uint32_t(len(text)-at), len(text)
	if text, err = appendJSON(text, h.FilterMetadata); err != nil {
		return 0, err
	}
	from.len[C.GO_FILTER_METADATA] = C.uint32_t(len(text) - at)
	if len(text) > 1<<31 {
		return 0, &UsageError{ErrLimit, "the text of a head is over 2 GiB"}
	}
	status := C.nexthop_go_begin(e.id.id, &from, (*C.char)(unsafe.Pointer(&text[:1][0])), out)
	return status, nil
}

func appendJSON(text []byte, object map[string]any) ([]byte, error) {
	if len(object) == 0 {
		return text, nil
	}
	encoded, err := json.Marshal(object)
	if err != nil {
		return nil, &UsageError{ErrInvalid, "metadata is no JSON object: " + err.Error()}
	}
	return append(text, encoded...), nil
}
