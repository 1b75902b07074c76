package nexthop

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// CheckOptions are those of [Engine.RunChecks].
type CheckOptions struct {
	// Performs and reports custom checks, each in a goroutine of its own, and should be done with ctx. Without it their
	// hosts count as unreachable, and the default logger of log/slog is told once per checker.
	Others func(ctx context.Context, check *Check)
	// For hosts that speak TLS; nil is the default. The server's name is the check's authority unless it is set here.
	TLS *tls.Config
}

const (
	// Updates bring checks unannounced; a coarse clock may lag behind its deadline.
	look = time.Second
	tick = time.Millisecond
	// Bytes of an answer that are kept when nothing else limits them; more are read and dropped.
	keptOfAnswer = 1 << 20
)

// RunChecks performs active checks, each in a goroutine, until ctx is done (its error) or the engine is closed (nil): HTTP
// over net/http, HTTP/2 with prior knowledge where a check asks for it, gRPC, TCP. It returns when those under way have
// ended. Hosts keep the health that they have.
func (e *Engine) RunChecks(ctx context.Context, options CheckOptions) error {
	c := &checker{options: options, ended: make(chan struct{}, 1), told: map[string]bool{}, transports: map[route]*http.Transport{}}
	defer c.close()
	for {
		due, err := e.Checks()
		switch {
		case errors.Is(err, ErrClosed):
			return nil
		case err != nil:
			return err
		}
		for _, check := range due {
			c.underWay.Add(1)
			go c.perform(ctx, check)
		}
		pause := e.ChecksDeadline()
		if pause == 0 || pause > look {
			pause = look
		}
		timer := time.NewTimer(max(pause, tick))
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-c.ended: // its result has set when this host is due again
			timer.Stop()
		case <-timer.C:
		}
	}
}

type checker struct {
	options  CheckOptions
	underWay sync.WaitGroup
	ended    chan struct{}

	mu         sync.Mutex
	told       map[string]bool
	transports map[route]*http.Transport
}

// route is what the connections of a transport have in common.
type route struct {
	http2, secure, reuse bool
	server, socket       string
}

func (c *checker) close() {
	c.underWay.Wait()
	for _, transport := range c.transports {
		transport.CloseIdleConnections()
	}
}

func (c *checker) perform(ctx context.Context, check *Check) {
	defer c.underWay.Done()
	ctx, cancel := context.WithTimeout(ctx, check.Timeout)
	defer cancel()
	var err error
	switch check.Protocol {
	case CheckTCP:
		err = c.bytes(ctx, check)
	case CheckHTTP, CheckGRPC:
		err = c.request(ctx, check)
	default:
		err = c.other(ctx, check)
	}
	// A check that is over meanwhile needs no report, nor one that was given up with the loop: its time runs out.
	if err != nil && !errors.Is(err, context.Canceled) {
		_ = check.Fail(err)
	}
	select {
	case c.ended <- struct{}{}:
	default:
	}
}

func (c *checker) other(ctx context.Context, check *Check) error {
	if c.options.Others != nil {
		c.options.Others(ctx, check)
		return nil
	}
	checker := check.Cluster + "\x00" + check.Name
	c.mu.Lock()
	first := !c.told[checker]
	c.told[checker] = true
	c.mu.Unlock()
	if first {
		slog.Warn("nexthop: a custom health check is not performed, so its hosts count as unreachable; set CheckOptions.Others",
			"cluster", check.Cluster, "checker", check.Name, "extension", check.Extension)
	}
	return LocalConnectFailure
}

// serverName is what a certificate has to say.
func serverName(check *Check) string {
	name := check.Authority
	if name == "" {
		name = check.Host.Hostname
	}
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	return name
}

func (c *checker) tls(check *Check) *tls.Config {
	config := &tls.Config{}
	if c.options.TLS != nil {
		config = c.options.TLS.Clone()
	}
	if config.ServerName == "" {
		config.ServerName = serverName(check)
	}
	return config
}

// network tells how to dial an address.
func network(address string) string {
	if strings.HasPrefix(address, "/") {
		return "unix"
	}
	return "tcp"
}

func (c *checker) bytes(ctx context.Context, check *Check) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, network(check.Address), check.Address)
	if err != nil {
		return err
	}
	if check.Secure {
		conn = tls.Client(conn, c.tls(check))
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if err := written(conn, check.Payload); err != nil {
		return ended(ctx, err)
	}
	var received []byte
	for chunk := make([]byte, 4096); ; {
		decided, err := check.Data(received)
		if decided || err != nil {
			return nil // over, whoever said so
		}
		n, err := conn.Read(chunk)
		if n == 0 && err != nil {
			return ended(ctx, err)
		}
		received = append(received, chunk[:min(n, keptOfAnswer-len(received))]...)
	}
}

// written makes sure that a connection is up, TLS included, even if nothing is to be sent.
func written(conn net.Conn, payload []byte) error {
	if secure, ok := conn.(*tls.Conn); ok {
		if err := secure.Handshake(); err != nil {
			return err
		}
	}
	_, err := conn.Write(payload)
	return err
}

// ended tells why a connection was closed: by us when the time was over.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

func (c *checker) transport(check *Check) *http.Transport {
	key := route{http2: check.HTTP2, secure: check.Secure, reuse: check.MayReuse}
	if check.Secure {
		key.server = serverName(check)
	}
	if network(check.Address) == "unix" {
		key.socket = check.Address
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	transport := c.transports[key]
	if transport == nil {
		protocols := new(http.Protocols)
		protocols.SetHTTP1(!key.http2)
		protocols.SetHTTP2(key.http2 && key.secure)
		protocols.SetUnencryptedHTTP2(key.http2 && !key.secure)
		transport = &http.Transport{
			Protocols: protocols, DisableKeepAlives: !key.reuse, DisableCompression: true, IdleConnTimeout: 3 * time.Minute,
		}
		if key.secure {
			transport.TLSClientConfig = c.tls(check)
		}
		if key.socket != "" {
			transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
				var dialer net.Dialer
				return dialer.DialContext(ctx, "unix", key.socket)
			}
		}
		c.transports[key] = transport
	}
	return transport
}

func (c *checker) request(ctx context.Context, check *Check) error {
	to, err := url.ParseRequestURI(check.Path)
	if err != nil {
		return LocalConnectFailure
	}
	to.Scheme, to.Host = "http", check.Address
	if check.Secure {
		to.Scheme = "https"
	}
	if network(check.Address) == "unix" {
		to.Host = "localhost"
	}
	request, err := http.NewRequestWithContext(ctx, check.Method, to.String(), bytes.NewReader(check.Payload))
	if err != nil {
		return LocalConnectFailure
	}
	request.Host, request.Header = check.Authority, check.Header
	reply, err := c.transport(check).RoundTrip(request)
	if err != nil {
		return ended(ctx, err)
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(io.LimitReader(reply.Body, min(check.BodyLimit, keptOfAnswer)))
	if err == nil {
		_, err = io.Copy(io.Discard, reply.Body)
	}
	if err != nil {
		return ended(ctx, err)
	}
	_ = check.Answer(reply.StatusCode, body, reply.Header, reply.Trailer)
	return nil
}
