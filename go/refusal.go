package nexthop

// #include "nexthop.h"
import "C"

import (
	"runtime"
	"strconv"
	"strings"
	"time"
	"unsafe"
)

// Refusal is the error of a choice without attempt. errors.Is with ErrNoHealthyUpstream and its like tells the kind.
type Refusal struct {
	Kind       RefusalKind
	Resource   Resource      // of RefusedOverflow; of composites why there is no host
	RetryAfter time.Duration // when it could work; 0: unknown
	Host       *Host         // when one was picked before a limit refused
	Reply      LocalReply

	missing string // of RefusedNoCluster: what the name was, and the nearest one
}

func (r *Refusal) Error() string {
	text := "nexthop: no attempt: " + r.Kind.String()
	if r.Resource != 0 {
		text += " (" + r.Resource.String() + ")"
	}
	if r.missing != "" {
		text += "; " + r.missing
	}
	return text + "; the local reply is " + strconv.Itoa(r.Reply.Status) + " " + r.Reply.Flags.String() + ", " + r.Reply.Details
}

// Is tells the kind.
func (r *Refusal) Is(target error) bool {
	switch r.Kind {
	case RefusedNoHealthyUpstream, RefusedCooling:
		return target == ErrNoHealthyUpstream
	case RefusedOverflow:
		return target == ErrOverflow
	case RefusedTimeout, RefusedDeadline:
		return target == ErrTimeout
	case RefusedNoRoute:
		return target == ErrNoRoute
	case RefusedNoCluster:
		return target == ErrNoCluster
	case RefusedDropOverload, RefusedUnconditionalDropOverload:
		return target == ErrDropOverload
	case RefusedMaintenance:
		return target == ErrMaintenance
	case RefusedAdmission, RefusedConcurrency:
		return target == ErrDenied
	}
	return false
}

func (e *Engine) refusal(d *C.nexthop_decision, name string) *Refusal {
	r := &Refusal{Kind: RefusalKind(d.refusal), Resource: Resource(d.resource)}
	if r.Kind == RefusedNoCluster && name != "" {
		r.missing = e.missing(name)
	}
	if d.wait > 0 && d.wait != C.NEXTHOP_NEVER {
		r.RetryAfter = time.Duration(d.wait)
	}
	if d.host_version != 0 {
		r.Host = e.host(uint32(d.host), uint32(d.host_version))
	}
	reply, ok := e.reply(uint64(d.request.id))
	if !ok {
		// Its slot was used again meanwhile: the decision alone.
		reply = LocalReply{
			Status:  int(d.status),
			Flags:   Flags(d.flags),
			Details: C.GoString(C.nexthop_name(C.NEXTHOP_NAMES_REFUSAL_DETAILS, C.uint32_t(d.refusal))),
			Body:    C.GoString(C.nexthop_name(C.NEXTHOP_NAMES_REFUSAL_BODY, C.uint32_t(d.refusal))),
			Headers: map[string]string{},
		}
	}
	r.Reply = reply
	return r
}

func (e *Engine) reply(request uint64) (LocalReply, bool) {
	raw := C.nexthop_local_reply{struct_size: C.sizeof_nexthop_local_reply}
	var pin runtime.Pinner
	defer pin.Unpin()
	buf := make([]byte, 1024)
	var n C.size_t
	for {
		// The results point into the buffer.
		pin.Pin(&buf[0])
		status := C.nexthop_reply(C.nexthop_request{id: C.uint64_t(request)}, &raw, (*C.char)(unsafe.Pointer(&buf[0])), C.size_t(len(buf)), &n)
		if status == C.NEXTHOP_SHORT {
			buf = make([]byte, n)
			continue
		}
		if status != C.NEXTHOP_OK {
			return LocalReply{}, false
		}
		break
	}
	reply := LocalReply{
		Status:  int(raw.status),
		Flags:   Flags(raw.flags),
		Details: goString(raw.details),
		Headers: make(map[string]string, raw.n_headers),
		Body:    goString(raw.body),
	}
	words := strings.Split(goString(raw.headers), "\x00")
	for i := 0; i+1 < len(words); i += 2 {
		reply.Headers[words[i]] = words[i+1]
	}
	return reply, true
}

func requestInfo(request uint64) (RequestInfo, error) {
	facts := C.nexthop_request_facts{struct_size: C.sizeof_nexthop_request_facts}
	var pin runtime.Pinner
	defer pin.Unpin()
	buf := make([]byte, 512)
	var n C.size_t
	for {
		pin.Pin(&buf[0])
		short := false
		err := checked(func() C.nexthop_status {
			status := C.nexthop_request_info(C.nexthop_request{id: C.uint64_t(request)}, &facts, (*C.char)(unsafe.Pointer(&buf[0])), C.size_t(len(buf)), &n)
			if short = status == C.NEXTHOP_SHORT; short {
				return C.NEXTHOP_OK
			}
			return status
		})
		if err != nil {
			return RequestInfo{}, err
		}
		if !short {
			break
		}
		buf = make([]byte, n)
	}
	return RequestInfo{
		Cluster:     goString(facts.cluster),
		Route:       goString(facts.route),
		Timeout:     limit(uint64(facts.timeout)),
		IdleTimeout: limit(uint64(facts.idle_timeout)),
	}, nil
}
