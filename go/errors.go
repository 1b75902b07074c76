package nexthop

// #include "nexthop.h"
import "C"

import (
	"errors"
	"runtime"
	"unsafe"
)

// Kinds of errors, for errors.Is.
var (
	ErrInvalid  = errors.New("nexthop: invalid argument")
	ErrEnded    = errors.New("nexthop: the attempt or request has ended")
	ErrState    = errors.New("nexthop: not legal in this state")
	ErrClosed   = errors.New("nexthop: the engine is closed")
	ErrConfig   = errors.New("nexthop: a document was refused")
	ErrNotFound = errors.New("nexthop: not found")
	ErrLimit    = errors.New("nexthop: a fixed limit is reached")
	ErrInternal = errors.New("nexthop: internal error")
)

// Kinds of refusals, for errors.Is with a [*Refusal].
var (
	ErrNoHealthyUpstream = errors.New("nexthop: no healthy upstream")
	ErrOverflow          = errors.New("nexthop: overflow")
	ErrTimeout           = errors.New("nexthop: timeout")
	ErrNoRoute           = errors.New("nexthop: no route")
	ErrNoCluster         = errors.New("nexthop: no cluster")
	ErrDropOverload      = errors.New("nexthop: dropped by overload policy")
	ErrMaintenance       = errors.New("nexthop: maintenance mode")
	ErrDenied            = errors.New("nexthop: denied")
)

// UsageError is wrong use of the package: what was wrong, what was found, what to do.
// errors.Is with one of the Err values of this package tells its kind.
type UsageError struct {
	kind     error
	sentence string
}

func (e *UsageError) Error() string { return "nexthop: " + e.sentence }

// Unwrap returns the kind.
func (e *UsageError) Unwrap() error { return e.kind }

// ConfigError says why documents were refused; nothing was changed by them.
type ConfigError struct {
	// Name of the document, or the file that could not be read.
	File string
	// From 1; 0 when the file could not be read.
	Line, Column int
	// Place inside the document, such as clusters[0].name.
	Path string
	// What is wrong, without the place.
	Message string
	// What stands there, and what may; empty when that is not the point.
	Found, Allowed string
	// The known name nearest to an unknown one, or empty.
	Nearest string
	whole   string
}

func (e *ConfigError) Error() string { return "nexthop: " + e.whole }

// Is tells that this is an ErrConfig.
func (e *ConfigError) Is(target error) bool { return target == ErrConfig }

// configError is the last error of this thread, in its parts.
func configError(sentence string) *ConfigError {
	var pin runtime.Pinner
	defer pin.Unpin()
	parts := C.nexthop_error_parts{struct_size: C.sizeof_nexthop_error_parts}
	buf := make([]byte, 1024)
	for {
		// The results point into the buffer.
		pin.Pin(&buf[0])
		var n C.size_t
		status := C.nexthop_last_error_parts(&parts, (*C.char)(unsafe.Pointer(&buf[0])), C.size_t(len(buf)), &n)
		if status == C.NEXTHOP_SHORT {
			buf = make([]byte, n)
			continue
		}
		if status != C.NEXTHOP_OK {
			return &ConfigError{Message: sentence, whole: sentence}
		}
		return &ConfigError{
			File:    goString(parts.file),
			Line:    int(parts.line),
			Column:  int(parts.column),
			Path:    goString(parts.path),
			Message: goString(parts.message),
			Found:   goString(parts.found),
			Allowed: goString(parts.allowed),
			Nearest: goString(parts.nearest),
			whole:   sentence,
		}
	}
}

func kindOf(status int) error {
	switch status {
	case C.NEXTHOP_INVALID:
		return ErrInvalid
	case C.NEXTHOP_ENDED:
		return ErrEnded
	case C.NEXTHOP_STATE:
		return ErrState
	case C.NEXTHOP_CLOSED:
		return ErrClosed
	case C.NEXTHOP_CONFIG, C.NEXTHOP_IO:
		return ErrConfig
	case C.NEXTHOP_NOT_FOUND:
		return ErrNotFound
	case C.NEXTHOP_LIMIT:
		return ErrLimit
	}
	return ErrInternal
}

// checked calls into the library and turns a status into an error. The sentence belongs to the calling thread, so
// the goroutine stays on it in between.
func checked(call func() C.nexthop_status) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	status := int(call())
	if status == C.NEXTHOP_OK {
		return nil
	}
	sentence := lastError()
	if status == C.NEXTHOP_CONFIG || status == C.NEXTHOP_IO {
		return configError(sentence)
	}
	return &UsageError{kindOf(status), sentence}
}

// repeated explains a hot call that failed: an erroneous call changes nothing and fails again, now with its
// sentence at hand. The hot path itself need not stay on a thread.
func repeated(status int, call func() int) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if call() == status {
		return &UsageError{kindOf(status), lastError()}
	}
	return &UsageError{kindOf(status), kindOf(status).Error()[len("nexthop: "):]}
}

func lastError() string {
	buf := make([]byte, 256)
	for {
		var n C.size_t
		status := C.nexthop_last_error((*C.char)(unsafe.Pointer(&buf[0])), C.size_t(len(buf)), &n)
		if status != C.NEXTHOP_SHORT {
			return string(buf[:n])
		}
		buf = make([]byte, n)
	}
}

// text calls until the buffer is large enough. More than one call of ask is only made when it asks for more room.
func text(ask func(buf *C.char, n C.size_t, needed *C.size_t) C.nexthop_status) ([]byte, error) {
	buf := make([]byte, 1024)
	var n C.size_t
	short := false
	for {
		err := checked(func() C.nexthop_status {
			status := ask((*C.char)(unsafe.Pointer(&buf[0])), C.size_t(len(buf)), &n)
			if short = status == C.NEXTHOP_SHORT; short || status == C.NEXTHOP_EMPTY {
				if !short {
					n = 0
				}
				return C.NEXTHOP_OK
			}
			return status
		})
		if err != nil {
			return nil, err
		}
		if !short {
			return buf[:n], nil
		}
		buf = make([]byte, n)
	}
}
