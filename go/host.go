package nexthop

// #include "nexthop.h"
import "C"

import (
	"encoding/json"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unique"
	"unsafe"
)

// Host is an upstream address. A change makes a new Host; this one never changes.
type Host struct {
	Address        string // "ip:port", "[v6]:port", "name:port" or a path
	Port           int    // 0 for pipes
	Hostname       string
	Cluster        string // that owns the host
	Weight         uint32
	Priority       int
	Region         string
	Zone           string
	SubZone        string
	Secure         bool // TLS towards the host
	ConnectTimeout time.Duration

	slot, version uint32
	metadata      string
}

// Metadata are the host's envoy.lb values. They are read anew in each call.
func (h *Host) Metadata() map[string]any {
	values := map[string]any{}
	if h != nil && h.metadata != "" {
		// The library wrote it.
		_ = json.Unmarshal([]byte(h.metadata), &values)
	}
	return values
}

const chunkHosts = 1024

type chunk [chunkHosts]atomic.Pointer[Host]

// mirror keeps a Host for each slot that was used. Equal version, equal host.
type mirror struct {
	chunks atomic.Pointer[[]*chunk] // nil where no host was used
	mu     sync.Mutex
}

func (m *mirror) put(h *Host) {
	at := int(h.slot / chunkHosts)
	m.mu.Lock()
	defer m.mu.Unlock()
	var chunks []*chunk
	if old := m.chunks.Load(); old != nil {
		chunks = *old
	}
	if at >= len(chunks) || chunks[at] == nil {
		grown := make([]*chunk, max(at+1, len(chunks)))
		copy(grown, chunks)
		grown[at] = new(chunk)
		chunks = grown
		m.chunks.Store(&chunks)
	}
	chunks[at][h.slot%chunkHosts].Store(h)
}

// host is the face of a slot. An open attempt keeps its host there; should it be gone all the same, a bare Host tells.
func (e *Engine) host(slot, version uint32) *Host {
	if chunks, at := e.hosts.chunks.Load(), slot/chunkHosts; chunks != nil && at < uint32(len(*chunks)) && (*chunks)[at] != nil {
		if h := (*chunks)[at][slot%chunkHosts].Load(); h != nil && h.version == version {
			return h
		}
	}
	return e.fetchHost(slot, version)
}

func (e *Engine) fetchHost(slot, version uint32) *Host {
	info := C.nexthop_host_info{struct_size: C.sizeof_nexthop_host_info}
	var pin runtime.Pinner
	defer pin.Unpin()
	buf := make([]byte, 1024)
	var n C.size_t
	for {
		// The results point into the buffer.
		pin.Pin(&buf[0])
		status := C.nexthop_host(e.id, C.uint32_t(slot), C.uint32_t(version), &info, (*C.char)(unsafe.Pointer(&buf[0])), C.size_t(len(buf)), &n)
		if status == C.NEXTHOP_SHORT {
			buf = make([]byte, n)
			continue
		}
		if status != C.NEXTHOP_OK {
			return &Host{slot: slot, version: version}
		}
		break
	}
	h := &Host{
		Address:        goString(info.address),
		Port:           int(info.port),
		Hostname:       goString(info.hostname),
		Cluster:        interned(info.cluster_name),
		Weight:         uint32(info.weight),
		Priority:       int(info.priority),
		Region:         interned(info.region),
		Zone:           interned(info.zone),
		SubZone:        interned(info.sub_zone),
		Secure:         info.bits&C.NEXTHOP_HOST_SECURE != 0,
		ConnectTimeout: limit(uint64(info.connect_timeout)),
		slot:           slot,
		version:        uint32(info.version),
		metadata:       goString(info.metadata),
	}
	e.hosts.put(h)
	return h
}

func goString(s C.nexthop_str) string {
	if s.ptr == nil {
		return ""
	}
	return C.GoStringN(s.ptr, C.int(s.len))
}

// interned is for words that most hosts share.
func interned(s C.nexthop_str) string {
	if s.ptr == nil {
		return ""
	}
	return unique.Make(goString(s)).Value()
}
