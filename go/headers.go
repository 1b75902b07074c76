package nexthop

// #include "nexthop.h"
import "C"

import (
	"encoding/binary"
	"net/textproto"
	"strings"
	"sync"
	"sync/atomic"
)

// Header is where wanted headers are looked up; [net/http.Header] is one. Names are asked for in canonical form
// ("X-Envoy-Degraded").
type Header interface{ Values(name string) []string }

// wantSet is a numbered list of header names; it never changes.
type wantSet struct {
	number uint32
	names  []string
}

var emptyWant = &wantSet{number: 1}

// wantSets keeps each set that was asked for, and the present one of request headers.
type wantSets struct {
	known   atomic.Pointer[map[uint32]*wantSet]
	request atomic.Pointer[wantSet]
	mu      sync.Mutex
}

// wanted returns a set by number; an unknown one is empty, so that nothing is looked up.
func (e *Engine) wanted(number uint32) *wantSet {
	if number <= 1 {
		return emptyWant
	}
	if known := e.wants.known.Load(); known != nil {
		if set := (*known)[number]; set != nil {
			return set
		}
	}
	set := e.fetchWant(number)
	if set == nil {
		return emptyWant
	}
	e.wants.mu.Lock()
	defer e.wants.mu.Unlock()
	grown := map[uint32]*wantSet{}
	if old := e.wants.known.Load(); old != nil {
		for number, set := range *old {
			grown[number] = set
		}
	}
	grown[set.number] = set
	e.wants.known.Store(&grown)
	return set
}

// wantedOfRequests is the present set; forget makes it be read again.
func (e *Engine) wantedOfRequests() *wantSet {
	if set := e.wants.request.Load(); set != nil {
		return set
	}
	set := e.fetchWant(0)
	if set == nil {
		return emptyWant
	}
	e.wants.request.Store(set)
	return set
}

func (e *Engine) fetchWant(number uint32) *wantSet {
	var found C.uint32_t
	list, err := text(func(buf *C.char, n C.size_t, needed *C.size_t) C.nexthop_status {
		return C.nexthop_want(e.id, C.uint32_t(number), &found, buf, n, needed)
	})
	if err != nil {
		return nil
	}
	set := &wantSet{number: uint32(found)}
	if len(list) > 0 {
		set.names = strings.Split(string(list), "\x00")
	}
	for i, name := range set.names {
		set.names[i] = textproto.CanonicalMIMEHeaderKey(name)
	}
	return set
}

// pack appends the set's headers that are there.
func (s *wantSet) pack(block []byte, h Header) []byte {
	for i, name := range s.names {
		for _, value := range h.Values(name) {
			block = binary.LittleEndian.AppendUint16(block, uint16(i))
			block = append(block, 0, 0)
			block = binary.LittleEndian.AppendUint32(block, uint32(len(value)))
			block = append(block, value...)
		}
	}
	return block
}

// extraHeaders asks for headers to set; a nil value is one to remove.
func (e *Engine) extraHeaders(id uint64) []extraHeader {
	if id == 0 {
		return nil
	}
	pairs, err := text(func(buf *C.char, n C.size_t, needed *C.size_t) C.nexthop_status {
		return C.nexthop_extra_headers(C.uint64_t(id), buf, n, needed)
	})
	if err != nil || len(pairs) == 0 {
		return nil
	}
	words := strings.Split(strings.TrimSuffix(string(pairs), "\x00"), "\x00")
	headers := make([]extraHeader, 0, len(words)/2)
	for i := 0; i+1 < len(words); i += 2 {
		headers = append(headers, extraHeader{words[i], words[i+1], words[i+1] == "\x01"})
	}
	return headers
}

type extraHeader struct {
	name, value string
	remove      bool
}
