package nexthop

// #include "nexthop.h"
import "C"

import (
	"strconv"
	"strings"
)

// Action is what a [Verdict] asks for.
type Action uint8

// Actions.
const (
	Forward Action = 1 // final: pass on this response, or answer with the local reply
	Retry   Action = 2 // drop this response and choose again
	Discard Action = 3 // drop this response; another attempt is in flight
)

func (a Action) String() string {
	switch a {
	case 0:
		return "none"
	case Forward:
		return "forward"
	case Retry:
		return "retry"
	case Discard:
		return "discard"
	}
	return unknown(uint32(a))
}

// Reason tells why a verdict is what it is.
type Reason uint8

func (r Reason) String() string { return name(C.NEXTHOP_NAMES_REASON, uint32(r)) }

// RefusalKind tells why there is no attempt.
type RefusalKind uint8

// Kinds of refusals.
const (
	RefusedNoHealthyUpstream         RefusalKind = 1
	RefusedOverflow                  RefusalKind = 2
	RefusedTimeout                   RefusalKind = 3
	RefusedNoRoute                   RefusalKind = 4
	RefusedNoCluster                 RefusalKind = 5
	RefusedDropOverload              RefusalKind = 6
	RefusedUnconditionalDropOverload RefusalKind = 7
	RefusedMaintenance               RefusalKind = 8
	RefusedInvalidHeaders            RefusalKind = 9
	RefusedDirectResponse            RefusalKind = 10
	RefusedAdmission                 RefusalKind = 11
	RefusedConcurrency               RefusalKind = 12
	RefusedBodyTooLarge              RefusalKind = 13
	RefusedDeadline                  RefusalKind = 14
	RefusedCooling                   RefusalKind = 15
)

func (k RefusalKind) String() string { return name(C.NEXTHOP_NAMES_REFUSAL, uint32(k)) }

// Resource is the limit that refused, or why a composite found no host. 0 is none.
type Resource uint8

// Limits.
const (
	ResourcePending     Resource = 1
	ResourceRequests    Resource = 2
	ResourceRetries     Resource = 3
	ResourcePools       Resource = 4
	ResourceConnections Resource = 5
)

func (r Resource) String() string {
	if r == 0 {
		return ""
	}
	return name(C.NEXTHOP_NAMES_RESOURCE, uint32(r))
}

// WaitReason tells what a request waits for.
type WaitReason uint8

// Reasons to wait.
const (
	WaitQueue    WaitReason = 1 // a permit of a full limit
	WaitBackoff  WaitReason = 2 // the back-off of a retry
	WaitHedge    WaitReason = 3 // the back-off of a hedge
	WaitAttempts WaitReason = 4 // a report of an attempt in flight
)

func (r WaitReason) String() string { return name(C.NEXTHOP_NAMES_WAIT, uint32(r)) }

// Failure is how an attempt failed; an error, so that it can be given to [Attempt.Fail].
type Failure uint8

// Failures.
const (
	ConnectFailure        Failure = 1
	ConnectTimeout        Failure = 2
	ConnectionTermination Failure = 3
	RemoteReset           Failure = 4
	RefusedStream         Failure = 5
	ProtocolError         Failure = 6
	LocalConnectFailure   Failure = 7
	Timeout               Failure = 8
	PerTryTimeout         Failure = 9
	PerTryIdleTimeout     Failure = 10
	GlobalTimeout         Failure = 11
	MaxStreamDuration     Failure = 12
	LocalReset            Failure = 13
	Overflow              Failure = 14
	ConnectError          Failure = 15
	PrematureClose        Failure = 16
	OverloadManager       Failure = 17
	NoErrorReset          Failure = 18
)

func (f Failure) String() string { return name(C.NEXTHOP_NAMES_FAILURE, uint32(f)) }

func (f Failure) Error() string { return "nexthop: " + f.String() }

// Note is a fact between a choice and the report, for [Request.Note] and [Attempt.Note].
type Note uint8

// Notes.
const (
	NoteConnected      Note = 1 // a connection is there that a queued request of a cluster with strict connections asked for
	NoteSent           Note = 2 // the request headers are sent
	NoteBodyComplete   Note = 3 // a streaming upload is over: timers start
	NoteRetryAbandoned Note = 4 // the upload outgrew what the caller keeps: no retry any more
	NoteInterim        Note = 5 // an interim response arrived
)

func (n Note) String() string { return name(C.NEXTHOP_NAMES_NOTE, uint32(n)) }

// Flags are Envoy's response flags.
type Flags uint32

// String is the comma-joined short form, "-" for none.
func (f Flags) String() string {
	var names []string
	for bit := range uint32(32) {
		if f&(1<<bit) != 0 {
			names = append(names, name(C.NEXTHOP_NAMES_FLAG, bit))
		}
	}
	if len(names) == 0 {
		return "-"
	}
	return strings.Join(names, ",")
}

func name(table, value uint32) string {
	if text := C.GoString(C.nexthop_name(C.uint32_t(table), C.uint32_t(value))); text != "" {
		return text
	}
	return unknown(value)
}

func unknown(value uint32) string { return "unknown(" + strconv.Itoa(int(value)) + ")" }

// Version is that of the library.
func Version() string { return C.GoString(C.nexthop_version()) }
