package nexthop

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Transport sends requests where the engine says: it matches routes (or asks Cluster), retries, hedges, and ends each
// attempt with the response's body. A request's body is replayed through GetBody; without it there is no retry
// once anything may have been sent.
type Transport struct {
	Engine *Engine
	// Base sends the attempts; nil: http.DefaultTransport.
	Base http.RoundTripper
	// Cluster names the cluster of a request; nil or "": the route tables are matched.
	Cluster func(*http.Request) string
	// Errors returns refusals and failures as errors. Else they are answered as Envoy would: 503, 504, ...
	Errors bool
}

// NewTransport is a Transport that matches the route tables and answers refusals and failures as Envoy would.
func NewTransport(e *Engine, base http.RoundTripper) *Transport {
	return &Transport{Engine: e, Base: base}
}

// RoundTrip sends a request to the hosts that the engine chooses.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	upload := &upload{req: req}
	defer upload.close()
	call := t.Engine.Request(t.head(req))
	defer call.Close()
	last, err := call.drive(req.Context(), func(try *try) { t.send(try, upload) })
	if err == nil && last.response != nil {
		for name, value := range call.ResponseHeaders() {
			last.response.Header.Set(name, value)
		}
		return last.response, nil
	}
	if err == nil {
		err = last.err
	}
	if refused, ok := err.(*Refusal); ok && (!t.Errors || refused.Kind == RefusedDirectResponse) {
		return localResponse(req, refused.Reply), nil
	}
	if req.Context().Err() == nil && !t.Errors {
		if reply, ok := call.Reply(); ok {
			return localResponse(req, reply), nil
		}
	}
	return nil, err
}

func (t *Transport) head(req *http.Request) Head {
	h := Head{
		Method:    req.Method,
		Scheme:    req.URL.Scheme,
		Authority: req.Host,
		Path:      req.URL.RequestURI(),
		Header:    req.Header,
		Source:    req.RemoteAddr,
	}
	if h.Authority == "" {
		h.Authority = req.URL.Host
	}
	if t.Cluster != nil {
		h.Cluster = t.Cluster(req)
	}
	if req.Body != nil && req.Body != http.NoBody {
		h.Body = BodyOnce
		if req.GetBody != nil {
			h.Body = BodyReplayable
		}
	}
	if deadline, ok := req.Context().Deadline(); ok {
		h.Timeout = max(time.Until(deadline), 1)
	}
	return h
}

// send is one attempt.
func (t *Transport) send(try *try, upload *upload) {
	out := upload.req.WithContext(try.ctx)
	url := *out.URL
	url.Scheme, url.Host = try.origin()
	out.URL = &url
	if out.Host == "" {
		out.Host = upload.req.URL.Host
	}
	if extra := try.extraHeaders(); len(extra) > 0 {
		out.Header = out.Header.Clone()
		if out.Header == nil {
			out.Header = http.Header{}
		}
		try.SetHeaders(out.Header)
		for _, h := range extra {
			switch h.name {
			case ":authority":
				out.Host = h.value
			case ":path":
				if rewritten, err := url.Parse(h.value); err == nil {
					url.Path, url.RawPath, url.RawQuery = rewritten.Path, rewritten.RawPath, rewritten.RawQuery
				}
			}
		}
	}
	if try.err = upload.open(out); try.err != nil {
		return
	}
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	response, err := base.RoundTrip(out)
	if err != nil {
		try.err = err
		return
	}
	verdict, err := try.OnHeaders(response.StatusCode, response.Header)
	if err != nil || verdict.Action != Forward {
		try.err = err
		drop(response)
		return
	}
	response.Request = upload.req
	response.Body = try.Body(response.Body)
	try.response = response
}

// drop gives a small response's connection back.
func drop(response *http.Response) {
	if 0 <= response.ContentLength && response.ContentLength <= 4096 {
		_, _ = io.Copy(io.Discard, response.Body)
	}
	_ = response.Body.Close()
}

// upload hands out the request's body, each attempt its own.
type upload struct {
	req  *http.Request
	used bool
}

func (u *upload) open(out *http.Request) error {
	if u.req.Body == nil || u.req.Body == http.NoBody {
		return nil
	}
	if !u.used {
		// RoundTrip of the base closes it.
		u.used = true
		return nil
	}
	if u.req.GetBody == nil {
		return io.ErrUnexpectedEOF
	}
	body, err := u.req.GetBody()
	out.Body = body
	return err
}

func (u *upload) close() {
	if u.req.Body != nil && !u.used {
		_ = u.req.Body.Close()
	}
}

func localResponse(req *http.Request, reply LocalReply) *http.Response {
	header := make(http.Header, len(reply.Headers))
	for name, value := range reply.Headers {
		header.Set(name, value)
	}
	return &http.Response{
		Status:        strings.TrimSpace(strconv.Itoa(reply.Status) + " " + http.StatusText(reply.Status)),
		StatusCode:    reply.Status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        header,
		Body:          io.NopCloser(strings.NewReader(reply.Body)),
		ContentLength: int64(len(reply.Body)),
		Request:       req,
	}
}
