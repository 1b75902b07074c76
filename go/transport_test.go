package nexthop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// backends starts servers on loopback; each gets its number.
func backends(t *testing.T, n int, handle func(i int, w http.ResponseWriter, r *http.Request)) []string {
	t.Helper()
	var addresses []string
	for i := range n {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handle(i, w, r) }))
		t.Cleanup(s.Close)
		addresses = append(addresses, s.Listener.Addr().String())
	}
	return addresses
}

// routed is an engine with one cluster of these hosts.
func routed(t *testing.T, hosts []string, policy string) *Engine {
	t.Helper()
	text := fmt.Sprintf("clusters:\n  web:\n    hosts: [%s]\n    policy: round_robin\n    %s\nroutes:\n  - {host: \"*\", cluster: web}\n",
		`"`+strings.Join(hosts, `", "`)+`"`, policy)
	e, err := New(Options{Clock: ClockPrecise, Workers: 1, Seed: 1}, Document{Text: text})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

const retrying = "retry: {on: [5xx, connect-failure, reset], times: 2, avoid_tried: true, backoff: {base: 1ms, max: 2ms}}"

func client(t *testing.T, e *Engine) *http.Client {
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	return &http.Client{Transport: NewTransport(e, base)}
}

func done(t *testing.T, e *Engine) {
	t.Helper()
	for until := time.Now().Add(5 * time.Second); live(t, e) != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal(live(t, e), "requests are left")
		}
	}
}

func TestTransportRetriesAndReplays(t *testing.T) {
	var bodies sync.Map
	hosts := backends(t, 2, func(i int, w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies.Store(i, string(body))
		if i == 0 {
			w.WriteHeader(503)
			return
		}
		fmt.Fprint(w, "from ", i)
	})
	e := routed(t, hosts, retrying)
	c := client(t, e)
	for range 6 {
		reply, err := c.Post("http://shop.example/pay?x=1", "text/plain", strings.NewReader("hello"))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(reply.Body)
		reply.Body.Close()
		if err != nil || reply.StatusCode != 200 || string(text) != "from 1" {
			t.Fatal(reply.Status, string(text), err)
		}
	}
	for i := range 2 {
		if body, _ := bodies.Load(i); body != "hello" {
			t.Fatalf("host %d got %q", i, body)
		}
	}
	done(t, e)
}

// What cannot be replayed is sent once.
func TestTransportSendsOnce(t *testing.T) {
	var calls atomic.Int32
	hosts := backends(t, 2, func(_ int, w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		calls.Add(1)
		w.WriteHeader(503)
	})
	e := routed(t, hosts, retrying)
	reply, err := client(t, e).Post("http://shop.example/", "text/plain", io.MultiReader(strings.NewReader("once")))
	if err != nil {
		t.Fatal(err)
	}
	reply.Body.Close()
	if reply.StatusCode != 503 || calls.Load() != 1 {
		t.Fatal(reply.Status, calls.Load())
	}
	done(t, e)
}

func TestTransportAnswersAsEnvoyWould(t *testing.T) {
	closed := must(net.Listen("tcp", "127.0.0.1:0"))
	address := closed.Addr().String()
	closed.Close()
	e := routed(t, []string{address}, "retry: {on: [connect-failure], times: 1, backoff: {base: 1ms, max: 2ms}}")
	reply, err := client(t, e).Get("http://shop.example/")
	if err != nil {
		t.Fatal(err)
	}
	text := must(io.ReadAll(reply.Body))
	if reply.StatusCode != 503 || len(text) == 0 {
		t.Fatal(reply.Status, string(text))
	}
	c := &http.Client{Transport: &Transport{Engine: e, Errors: true}}
	if _, err = c.Get("http://shop.example/"); err == nil || FailureOf(err) != ConnectFailure {
		t.Fatal(err)
	}
	c.Transport.(*Transport).Cluster = func(*http.Request) string { return "none" }
	_, err = c.Get("http://shop.example/")
	wantErr(t, err, ErrNoCluster)
	done(t, e)
}

func TestTransportEndsWithTheBody(t *testing.T) {
	hosts := backends(t, 1, func(_ int, w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(bytes.Repeat([]byte("x"), 1<<20))
	})
	e := routed(t, hosts, "timeout: 10s")
	c := client(t, e)
	reply, err := c.Get("http://shop.example/")
	if err != nil {
		t.Fatal(err)
	}
	if live(t, e) != 1 {
		t.Fatal("the body is not read yet")
	}
	if n := must(io.Copy(io.Discard, reply.Body)); n != 1<<20 {
		t.Fatal(n)
	}
	if live(t, e) != 0 {
		t.Fatal("the body is over")
	}
	reply.Body.Close()
	// Closed early: cancelled.
	reply = must(c.Get("http://shop.example/"))
	reply.Body.Close()
	reply.Body.Close()
	if live(t, e) != 0 {
		t.Fatal("the body is closed")
	}
}

func TestTransportBrokenBody(t *testing.T) {
	hosts := backends(t, 1, func(_ int, w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write([]byte("short"))
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	e := routed(t, hosts, retrying)
	reply := must(client(t, e).Get("http://shop.example/"))
	if _, err := io.ReadAll(reply.Body); err == nil || FailureOf(err) != ConnectionTermination {
		t.Fatal(err)
	}
	reply.Body.Close()
	done(t, e)
}

func TestTransportTimeoutAndCancel(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	hosts := backends(t, 1, func(_ int, w http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	e := routed(t, hosts, "timeout: 0.05s")
	reply := must(client(t, e).Get("http://shop.example/"))
	reply.Body.Close()
	if reply.StatusCode != 504 {
		t.Fatal(reply.Status)
	}
	e = routed(t, hosts, "timeout: 10s")
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	req := must(http.NewRequestWithContext(ctx, "GET", "http://shop.example/", nil))
	_, err := client(t, e).Do(req)
	wantErr(t, err, context.Canceled)
	done(t, e)
}

func TestReverseProxy(t *testing.T) {
	hosts := backends(t, 2, func(i int, w http.ResponseWriter, r *http.Request) {
		if i == 0 {
			w.WriteHeader(500)
			return
		}
		fmt.Fprint(w, r.URL.Path)
	})
	e := routed(t, hosts, retrying)
	proxy := httputil.NewSingleHostReverseProxy(must(url.Parse("http://upstream.example")))
	proxy.Transport = NewTransport(e, http.DefaultTransport)
	front := httptest.NewServer(proxy)
	defer front.Close()
	for range 4 {
		reply := must(http.Get(front.URL + "/a/b"))
		text := must(io.ReadAll(reply.Body))
		reply.Body.Close()
		if reply.StatusCode != 200 || string(text) != "/a/b" {
			t.Fatal(reply.Status, string(text))
		}
	}
	done(t, e)
}

func TestRun(t *testing.T) {
	e := routed(t, []string{"10.0.0.1:80", "10.0.0.2:80"}, retrying)
	var numbers []int
	err := e.Request(Head{Cluster: "web"}).Run(t.Context(), func(ctx context.Context, a Attempt) error {
		numbers = append(numbers, a.Number)
		if a.Number < 3 {
			return ConnectFailure
		}
		return nil
	})
	if err != nil || fmt.Sprint(numbers) != "[1 2 3]" {
		t.Fatal(err, numbers)
	}
	err = e.Request(Head{Cluster: "web"}).Run(t.Context(), func(ctx context.Context, a Attempt) error {
		must(a.Complete(503, nil))
		return nil
	})
	if err != nil {
		t.Fatal("reported by itself:", err)
	}
	own := errors.New("mine")
	err = e.Request(Head{Cluster: "web"}).Run(t.Context(), func(ctx context.Context, a Attempt) error { return own })
	wantErr(t, err, own)
	wantErr(t, e.Request(Head{Cluster: "none"}).Run(t.Context(), nil), ErrNoCluster)
	func() {
		defer func() { _ = recover() }()
		_ = e.Request(Head{Cluster: "web"}).Run(t.Context(), func(context.Context, Attempt) error { panic("oops") })
	}()
	if live(t, e) != 0 {
		t.Fatal(live(t, e), "requests are left")
	}
}

func TestFailures(t *testing.T) {
	h2 := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }))
	h2.EnableHTTP2 = true
	h2.StartTLS()
	defer h2.Close()
	_, reset := h2.Client().Get(h2.URL)
	_, untrusted := http.Get(h2.URL)
	plain := must(net.Listen("tcp", "127.0.0.1:0"))
	defer plain.Close()
	answer := "HTTP/1.1 200 OK\r\nA: b\r\n"
	var mu sync.Mutex
	go func() {
		for {
			c, err := plain.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 4096))
			mu.Lock()
			_, _ = c.Write([]byte(answer))
			mu.Unlock()
			c.Close()
		}
	}()
	address := "http://" + plain.Addr().String()
	_, cut := http.Get(address)
	mu.Lock()
	answer = ""
	mu.Unlock()
	_, empty := http.Get(address)
	mu.Lock()
	answer = "nonsense\r\n\r\n"
	mu.Unlock()
	_, malformed := http.Get(address)
	deadline, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	_, late := http.DefaultClient.Do(must(http.NewRequestWithContext(deadline, "GET", address, nil)))
	_, unknown := (&net.Resolver{PreferGo: true}).LookupHost(deadline, "no-such-host.invalid")
	refused := func() error {
		l := must(net.Listen("tcp", "127.0.0.1:0"))
		l.Close()
		_, err := net.Dial("tcp", l.Addr().String())
		return err
	}()
	for i, c := range []struct {
		err  error
		want Failure
	}{
		{reset, RemoteReset}, {untrusted, ConnectFailure}, {cut, ConnectionTermination}, {empty, ConnectionTermination},
		{malformed, ProtocolError}, {late, Timeout}, {unknown, ConnectTimeout}, {refused, ConnectFailure},
		{context.Canceled, 0}, {context.DeadlineExceeded, Timeout}, {errors.New("mine"), 0}, {nil, 0},
		{fmt.Errorf("wrapped: %w", PerTryIdleTimeout), PerTryIdleTimeout}, {io.EOF, ConnectionTermination},
	} {
		if got := FailureOf(c.err); got != c.want {
			t.Errorf("%d: %v (%T) is %v, not %v", i, c.err, c.err, got, c.want)
		}
	}
}
