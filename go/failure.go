package nexthop

// #include "shim.h"
import "C"

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"os"
	"strings"
	"syscall"
)

// Fail reports that the attempt failed with this error, see [FailureOf]; after OnHeaders: the body broke. An error that
// is not the upstream's fault, such as a cancelled context, cancels the attempt, and the verdict says nothing.
func (a Attempt) Fail(err error) (Verdict, error) {
	if a.e == nil {
		return Verdict{}, errNoAttempt
	}
	failure := FailureOf(err)
	if a.t != nil && failure == 0 && a.t.timedOut() {
		failure = Timeout
	}
	if failure == 0 {
		a.cancel()
		return Verdict{}, nil
	}
	return a.answered(C.nexthop_go_fail(C.uint64_t(a.id), C.uint32_t(failure)), false, func() C.nexthop_verdict {
		return C.nexthop_go_fail(C.uint64_t(a.id), C.uint32_t(failure))
	})
}

// streamError has the shape of net/http's HTTP/2 stream error, which is unexported and fills lookalikes.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (streamError) Error() string { return "stream error" }

// FailureOf tells which failure an error of net, net/http or the system is; 0 when it is not the upstream's.
func FailureOf(err error) Failure {
	var explicit Failure
	if err == nil || errors.As(err, &explicit) {
		return explicit
	}
	if errors.Is(err, context.Canceled) {
		return 0
	}
	var operation *net.OpError
	dialing := errors.As(err, &operation) && operation.Op == "dial"
	var lookup *net.DNSError
	if errors.As(err, &lookup) {
		dialing = true
	}
	if isTimeout(err) {
		if dialing || strings.Contains(err.Error(), "TLS handshake timeout") {
			return ConnectTimeout
		}
		return Timeout
	}
	for _, local := range []error{syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.EADDRINUSE} {
		if errors.Is(err, local) {
			return LocalConnectFailure
		}
	}
	if dialing || errors.Is(err, syscall.ECONNREFUSED) || isHandshake(err) {
		return ConnectFailure
	}
	var stream streamError
	if errors.As(err, &stream) {
		return ofStream(stream.Code)
	}
	if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return RemoteReset
	}
	text := err.Error()
	var protocol *http.ProtocolError
	if errors.As(err, &protocol) || errors.As(err, new(textproto.ProtocolError)) || strings.Contains(text, "malformed HTTP") {
		return ProtocolError
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		strings.Contains(text, "server closed idle connection") || strings.Contains(text, "server sent GOAWAY") ||
		strings.Contains(text, "client connection lost") {
		return ConnectionTermination
	}
	if operation != nil {
		return RemoteReset
	}
	return 0
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.As(err, &timeout) && timeout.Timeout()
}

func isHandshake(err error) bool {
	var record tls.RecordHeaderError
	var alert tls.AlertError
	var verification *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var hostname x509.HostnameError
	var certificate x509.CertificateInvalidError
	return errors.As(err, &record) || errors.As(err, &alert) || errors.As(err, &verification) ||
		errors.As(err, &authority) || errors.As(err, &hostname) || errors.As(err, &certificate)
}

// ofStream reads an HTTP/2 error code.
func ofStream(code uint32) Failure {
	switch code {
	case 0:
		return NoErrorReset
	case 1:
		return ProtocolError
	case 7:
		return RefusedStream
	}
	return RemoteReset
}
