package nexthop

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

const overHTTP = "http_health_check: {path: /health}"

// checked is a document of one cluster whose hosts are checked.
func checkedMesh(probe string, more string, hosts ...string) string {
	var list []string
	for _, address := range hosts {
		ip, port, _ := strings.Cut(address, ":")
		list = append(list, fmt.Sprintf("{endpoint: {address: {socket_address: {address: %s, port_value: %s}}}}", ip, port))
	}
	return fmt.Sprintf(`clusters: [{name: web, common_lb_config: {healthy_panic_threshold: {value: 0}}, %s
  load_assignment: {cluster_name: web, endpoints: [{lb_endpoints: [%s]}]},
  health_checks: [{timeout: 5s, interval: 0.02s, no_traffic_interval: 0.02s, unhealthy_threshold: 2, healthy_threshold: 1, %s}]}]`,
		more, strings.Join(list, ", "), probe)
}

const http2Cluster = "http2_protocol_options: {},"

func healthFlags(t testing.TB, e *Engine) string {
	t.Helper()
	var hosts []struct {
		Flags string `json:"health_flags"`
	}
	if err := json.Unmarshal(must(e.Hosts("web")), &hosts); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, host := range hosts {
		all = append(all, host.Flags)
	}
	return strings.Join(all, " ")
}

func wantFlags(t testing.TB, e *Engine, wanted string) {
	t.Helper()
	if found := healthFlags(t, e); found != wanted {
		t.Fatalf("flags are %s, not %s", found, wanted)
	}
}

func TestNobodyIsCheckedWithoutAQuestion(t *testing.T) {
	e := manual(t, checkedMesh(overHTTP, "", "10.0.0.1:80"))
	if err := e.Advance(time.Hour); err != nil {
		t.Fatal(err)
	}
	wantFlags(t, e, "healthy")
	if e.ChecksDeadline() != 0 {
		t.Fatal("there is a deadline")
	}
}

func TestAnswersAreJudgedAndResultsTaken(t *testing.T) {
	e := manual(t, checkedMesh(overHTTP, "", "10.0.0.1:80", "10.0.0.2:80"))
	due := must(e.Checks())
	if len(due) != 2 || len(must(e.Checks())) != 0 || e.ChecksDeadline() != 5*time.Second {
		t.Fatalf("%d checks, deadline %s", len(due), e.ChecksDeadline())
	}
	first := due[0]
	seen := fmt.Sprintln(first.Protocol, first.Method, first.Path, first.Authority, first.Cluster, first.Timeout, first.BodyLimit, first.HTTP2, first.Secure, first.MayReuse, first.Header)
	if seen != "http GET /health web web 5s 0 false false true map[User-Agent:[Envoy/HC]]\n" || first.Address != first.Host.Address {
		t.Fatal(seen)
	}
	if err := first.Answer(503, nil, http.Header{"X-Envoy-Immediate-Health-Check-Fail": {"1"}}); err != nil {
		t.Fatal(err)
	}
	if err := due[1].Result(CheckDegraded); err != nil {
		t.Fatal(err)
	}
	wantFlags(t, e, "/failed_active_hc/excluded_via_immediate_hc_fail /degraded_active_hc")
	if events := fmt.Sprintf("%s", must(e.Events())); !strings.Contains(events, "health_check_failure_event") {
		t.Fatal(events)
	}
	if stats := string(must(e.StatsJSON())); !strings.Contains(stats, `"cluster.web.health_check.success":1`) {
		t.Fatal(stats)
	}
}

func TestBytesAndGRPC(t *testing.T) {
	e := manual(t, checkedMesh("tcp_health_check: {send: {text: '50'}, receive: [{text: '6f'}, {text: '6b'}]}", "", "10.0.0.1:80"))
	check := must(e.Checks())[0]
	if check.Protocol != CheckTCP || string(check.Payload) != "P" {
		t.Fatal(check)
	}
	for part, decided := range map[string]bool{"": false, "xo": false} {
		if must(check.Data([]byte(part))) != decided {
			t.Fatal(part)
		}
	}
	if !must(check.Data([]byte("xo k"))) {
		t.Fatal("not decided")
	}
	wantFlags(t, e, "healthy")
	e = manual(t, checkedMesh("grpc_health_check: {service_name: s}", http2Cluster, "10.0.0.1:80"))
	for _, status := range []byte{2, 1} {
		check := must(e.Checks())[0]
		if check.Protocol != CheckGRPC || !check.HTTP2 || !bytes.Equal(check.Payload, []byte{0, 0, 0, 0, 3, 10, 1, 's'}) {
			t.Fatal(check)
		}
		trailer := http.Header{"Grpc-Status": {"0"}}
		if err := check.Answer(200, []byte{0, 0, 0, 0, 2, 8, status}, http.Header{}, trailer); err != nil {
			t.Fatal(err)
		}
		wantFlags(t, e, map[byte]string{1: "healthy", 2: "/failed_active_hc"}[status])
		_ = e.Advance(20 * time.Millisecond)
	}
}

func TestTimeAndWrongUseOfChecks(t *testing.T) {
	e := manual(t, checkedMesh(overHTTP, "", "10.0.0.1:80"))
	late := must(e.Checks())[0]
	_ = e.Advance(5 * time.Second)
	wantFlags(t, e, "/failed_active_hc/active_hc_timeout")
	wantErr(t, late.Result(CheckSuccess), ErrEnded)
	wantErr(t, late.Answer(200, nil), ErrEnded)
	wantErr(t, late.Fail(io.EOF), ErrEnded)
	wantErr(t, late.Result(0), ErrInvalid)
	wantErr(t, late.Result(8), ErrInvalid)
	wantErr(t, late.Answer(-1, nil), ErrInvalid)
	wantErr(t, (*Check)(nil).Result(CheckSuccess), ErrInvalid)
	wantErr(t, (&Check{}).Answer(200, nil, http.Header{}), ErrInvalid)
	wantErr(t, (&Check{ID: 99, e: e}).Fail(io.EOF), ErrInvalid)
	_ = e.Advance(20 * time.Millisecond)
	check := must(e.Checks())[0]
	if err := check.Answer(0, nil); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "cannot be judged") {
		t.Fatal(err)
	}
	if err := errors.Join(check.Result(CheckPassive), check.Fail(errors.New("anything"))); err != nil {
		t.Fatal(err)
	}
	_ = e.Close()
	_, err := e.Checks()
	wantErr(t, err, ErrClosed)
	wantErr(t, check.Result(CheckSuccess), ErrClosed)
	if err := e.RunChecks(context.Background(), CheckOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestHostsLeaveWhileChecksAreOut(t *testing.T) {
	e := manual(t, checkedMesh(overHTTP, "", "10.0.0.1:80", "10.0.0.2:80"))
	due := must(e.Checks())
	must(e.SetHosts("web", []HostSpec{{Address: due[1].Address}}))
	wantErr(t, due[0].Result(CheckSuccess), ErrEnded)
	must(e.UpdateString("clusters: []"))
	wantErr(t, due[1].Result(CheckSuccess), ErrEnded)
	if len(must(e.Checks())) != 0 {
		t.Fatal("nobody is left to check")
	}
}

// script tells what was asked, and answers in order, each when it may; the last answer for ever.
type script struct {
	mu      sync.Mutex
	answers []string
	seen    chan string
	may     chan struct{}
}

func newScript(answers ...string) *script {
	return &script{answers: answers, seen: make(chan string, 9), may: make(chan struct{})}
}

func (s *script) next(asked string) string {
	s.seen <- asked
	<-s.may
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := s.answers[0]
	if len(s.answers) > 1 {
		s.answers = s.answers[1:]
	}
	return answer
}

// performed lets the loop check the host at this address: the first answer fails it, the second brings it back. A check
// begins when the result of the one before it is known.
func performed(t *testing.T, s *script, document, asked string, options CheckOptions) {
	e, err := New(Options{Clock: ClockPrecise}, Document{Text: document})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error)
	go func() { over <- e.RunChecks(ctx, options) }()
	if seen := <-s.seen; seen != asked {
		t.Errorf("asked %q, not %q", seen, asked)
	}
	for _, flags := range []string{"/failed_active_hc", "healthy"} {
		s.may <- struct{}{}
		<-s.seen
		wantFlags(t, e, flags)
	}
	cancel()
	close(s.may)
	wantErr(t, <-over, context.Canceled)
	_ = e.Close()
}

// server answers over HTTP: "STATUS BODY", with the trailer of gRPC.
func (s *script) server(t *testing.T, http2, secure bool) *httptest.Server {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent, _ := io.ReadAll(r.Body)
		var status int
		answer := s.next(fmt.Sprintf("%s %s %s %s %s %q", r.Method, r.RequestURI, r.Host, r.UserAgent(), r.Proto, sent))
		_, _ = fmt.Sscanf(answer, "%d", &status)
		w.Header().Set("Trailer", "Grpc-Status")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer[4:])
		w.Header().Set("Grpc-Status", "0")
	}))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(!http2)
	server.Config.Protocols.SetUnencryptedHTTP2(http2 && !secure)
	server.Config.Protocols.SetHTTP2(http2 && secure)
	server.EnableHTTP2 = http2 && secure
	if secure {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	return server
}

func TestTheLoopPerformsHTTP(t *testing.T) {
	put := "http_health_check: {path: '/h?x', method: PUT, send: {text: '6869'}, receive: [{text: '6f6b'}], response_buffer_size: 4, host: other.example}"
	grpc, bad, good := "grpc_health_check: {service_name: s}", "\x00\x00\x00\x00\x02\x08\x02", "\x00\x00\x00\x00\x02\x08\x01"
	for name, c := range map[string]struct {
		http2, secure bool
		probe, asked  string
		answers       []string
	}{
		"get":   {false, false, overHTTP, `GET /health web Envoy/HC HTTP/1.1 ""`, []string{"503 ", "200 "}},
		"put":   {false, false, put, `PUT /h?x other.example Envoy/HC HTTP/1.1 "hi"`, []string{"200 12345ok", "200 1ok456"}},
		"http2": {true, false, "http_health_check: {path: /h, codec_client_type: HTTP2}", `GET /h web Envoy/HC HTTP/2.0 ""`, []string{"500 ", "200 "}},
		"grpc":  {true, false, grpc, `POST /grpc.health.v1.Health/Check web Envoy/HC HTTP/2.0 "\x00\x00\x00\x00\x03\n\x01s"`, []string{"200 " + bad, "200 " + good}},
		"tls":   {true, true, grpc, `POST /grpc.health.v1.Health/Check web Envoy/HC HTTP/2.0 "\x00\x00\x00\x00\x03\n\x01s"`, []string{"200 " + bad, "200 " + good}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(c.answers...)
			server := s.server(t, c.http2, c.secure)
			more := ""
			if c.http2 {
				more = http2Cluster
			}
			options := CheckOptions{}
			if c.secure {
				more += "transport_socket: {name: envoy.transport_sockets.tls, typed_config: {'@type': type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext}},"
				roots := server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
				options.TLS = &tls.Config{RootCAs: roots, ServerName: "example.com"}
			}
			performed(t, s, checkedMesh(c.probe, more, server.Listener.Addr().String()), c.asked, options)
		})
	}
}

func TestTheLoopPerformsTCP(t *testing.T) {
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	defer listener.Close()
	s := newScript("", "xPO NGx")
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				asked := make([]byte, 4)
				_, _ = io.ReadFull(conn, asked)
				for _, part := range strings.Fields(s.next(string(asked))) {
					_, _ = io.WriteString(conn, part)
				}
			}()
		}
	}()
	probe := "tcp_health_check: {send: {text: '50494e47'}, receive: [{text: '504f4e47'}]}"
	performed(t, s, checkedMesh(probe, "", listener.Addr().String()), "PING", CheckOptions{})
}

func TestWhatTheLoopCannotDoIsHandedOn(t *testing.T) {
	document := checkedMesh("custom_health_check: {name: envoy.health_checkers.redis}", "", "127.0.0.1:1")
	e := must(FromString(document))
	seen := make(chan string)
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error)
	others := func(ctx context.Context, check *Check) {
		_ = check.Result(CheckFailed)
		select {
		case seen <- check.Extension:
		case <-ctx.Done():
		}
	}
	go func() { over <- e.RunChecks(ctx, CheckOptions{Others: others}) }()
	if extension := <-seen; extension != "envoy.health_checkers.redis" {
		t.Error(extension)
	}
	wantFlags(t, e, "/failed_active_hc")
	cancel()
	wantErr(t, <-over, context.Canceled)
	_ = e.Close()
}
