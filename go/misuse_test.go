package nexthop

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Every method of a nil or zero value answers; those that can say why not do.
func TestZeroValues(t *testing.T) {
	silent := map[string]bool{"Maintain": true, "ChecksDeadline": true, "Now": true, "Request": true, "Stats": true, "ResponseHeaders": true, "Reply": true,
		"BodyComplete": true, "RetryAbandoned": true, "Attempts": true, "URL": true, "Headers": true, "SetHeaders": true,
		"Cancel": true, "Body": true, "Explain": true, "IdleTimeout": true, "Metadata": true, "Close": true}
	for name, value := range map[string]any{
		"nil engine": (*Engine)(nil), "engine": &Engine{}, "nil request": (*Request)(nil), "request": &Request{},
		"attempt": Attempt{}, "request of a zero engine": (&Engine{}).Request(Head{Cluster: "a"}),
		"request of a nil engine": (*Engine)(nil).Request(Head{Path: "/"}), "nil host": (*Host)(nil),
	} {
		of := reflect.ValueOf(value)
		for i := range of.NumMethod() {
			method, call := of.Type().Method(i).Name, of.Method(i)
			arguments := []reflect.Value{}
			for j := range call.Type().NumIn() {
				if call.Type().IsVariadic() && j == call.Type().NumIn()-1 {
					break
				}
				in := call.Type().In(j)
				switch {
				case in == reflect.TypeFor[context.Context]():
					arguments = append(arguments, reflect.ValueOf(context.Background()))
				case in == reflect.TypeFor[error]():
					arguments = append(arguments, reflect.ValueOf(errors.New("some")))
				case in.Kind() == reflect.Int:
					arguments = append(arguments, reflect.ValueOf(1))
				default:
					arguments = append(arguments, reflect.Zero(in))
				}
			}
			results := call.Call(arguments)
			if range1, ok := anyOf(results).(func(func(Attempt, error) bool)); ok {
				range1(func(_ Attempt, err error) bool { wantErr(t, err, ErrInvalid); return true })
			}
			if silent[method] && (len(results) == 0 || !results[len(results)-1].Type().Implements(reflect.TypeFor[error]())) {
				continue
			}
			err, _ := anyOf(results).(error)
			if !errors.Is(err, ErrInvalid) {
				t.Errorf("%s.%s: %v, not ErrInvalid", name, method, err)
			}
		}
	}
}

func anyOf(results []reflect.Value) any {
	if len(results) == 0 {
		return nil
	}
	return results[len(results)-1].Interface()
}

func TestNumbersOutOfRange(t *testing.T) {
	e := manual(t)
	for _, number := range []int{-1, math.MinInt, math.MaxInt, 1 << 31, 1<<32 + 1} {
		_, err := e.ChooseHost("plain", number)
		wantErr(t, err, ErrInvalid)
		says(t, err, "the attempt number is "+strconv.Itoa(number)+"; attempts count from 1 to 2147483647")
		_, err = e.ChooseHost("plain", number, WithKey([]byte("k")))
		wantErr(t, err, ErrInvalid)
	}
	for _, head := range []Head{{Cluster: "plain", Priority: 9}, {Cluster: "plain", Body: 9}, {Cluster: "plain", OverrideHost: "!"}} {
		_, _, err := e.Request(head).TryChooseHost()
		wantErr(t, err, ErrInvalid)
		if head.OverrideHost != "" && !strings.Contains(err.Error(), "override_host") {
			t.Fatal(err)
		}
	}
	for _, options := range []Options{{Workers: math.MaxInt}, {Workers: 5000}, {Clock: 9}} {
		_, err := New(options, texts([]string{mesh})...)
		wantErr(t, err, ErrInvalid)
	}
	wantErr(t, e.Advance(math.MaxInt64), ErrInvalid)
	if e.Advance(time.Second) != nil || live(t, e) != 0 {
		t.Fatal("nothing has changed")
	}
	real := must(FromString(mesh))
	defer real.Close()
	err := real.Advance(1)
	wantErr(t, err, ErrState)
	if !strings.Contains(err.Error(), "ClockManual") {
		t.Fatal(err)
	}
}

func says(t *testing.T, err error, part string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "NEXTHOP_") {
		t.Fatalf("%v does not say: %s", err, part)
	}
}

func TestSentencesSayWhatWasFound(t *testing.T) {
	e := manual(t)
	a := must(e.ChooseHost("plain", 1))
	for _, status := range []int{-1, 42, 1000, math.MaxInt, math.MinInt} {
		_, err := a.Complete(status, nil)
		wantErr(t, err, ErrInvalid)
		_, err = a.OnHeaders(status, nil)
		wantErr(t, err, ErrInvalid)
		says(t, err, "the status is "+strconv.Itoa(status)+"; it is 100 to 999")
	}
	_, err := a.Complete(42, nil)
	says(t, err, "the status is 42; it is 100 to 999")
	_, err = a.Complete(-1, nil)
	says(t, err, "the status is -1; it is 100 to 999")
	_, err = a.Fail(Failure(99))
	says(t, err, "the failure is 99; there are 1 to")
	err = a.Note(Note(99))
	says(t, err, "the note is 99; there are 1 to")
	says(t, a.End(nil), "no response headers were reported; report them first")
	_ = must(a.OnHeaders(200, nil))
	_, err = a.Complete(200, nil)
	wantErr(t, err, ErrState)
	says(t, err, "the attempt was answered; use end")
	if err := a.End(nil); err != nil {
		t.Fatal(err)
	}
	_, err = a.Complete(200, nil)
	says(t, err, "the attempt has ended")
	_, err = New(Options{}, Document{Text: mesh, Dialect: 99})
	says(t, err, "the dialect is 99; there are 0 to 8")
	_, err = e.Hosts("plian")
	wantErr(t, err, ErrNotFound)
	says(t, err, `no cluster "plian"; did you mean "plain"?`)
	_, err = e.Request(Head{Cluster: "plain"}).Info()
	wantErr(t, err, ErrState)
	_, _, err = e.Request(Head{Cluster: "plain", Route: "x"}).TryChooseHost()
	wantErr(t, err, ErrInvalid)
	says(t, err, "both a cluster and a route are named; name one of them")
	r := e.Request(Head{Cluster: "checkout"})
	open := must(r.ChooseHost(t.Context()))
	_, err = r.ChooseHost(t.Context())
	says(t, err, "attempt 1 is open; report or cancel it")
	open.Cancel()
}

func TestNamesThatNothingHas(t *testing.T) {
	e := manual(t)
	const sentence = `nexthop: no attempt: no_cluster; no cluster or route "plian"; did you mean "plain"?; the local reply is 503 NC, cluster_not_found`
	_, err := e.ChooseHost("plian", 1)
	wantErr(t, err, ErrNoCluster)
	if err.Error() != sentence {
		t.Fatal(err)
	}
	_, err = e.Request(Head{Cluster: "plian"}).ChooseHost(t.Context())
	if err.Error() != sentence {
		t.Fatal(err)
	}
}

func TestNoContext(t *testing.T) {
	e := manual(t)
	held := must(e.Request(Head{Cluster: "narrow"}).ChooseHost(t.Context()))
	r := e.Request(Head{Cluster: "narrow"})
	var none context.Context
	_, err := r.ChooseHost(none)
	wantErr(t, err, ErrInvalid)
	wantErr(t, r.Run(none, func(context.Context, Attempt) error { return nil }), ErrInvalid)
	for _, err := range r.Attempts(none) {
		wantErr(t, err, ErrInvalid)
	}
	if live(t, e) != 1 {
		t.Fatal("a place in the queue was taken")
	}
	held.Cancel()
}

func TestNoDocuments(t *testing.T) {
	e := manual(t)
	_, err := FromString()
	wantErr(t, err, ErrInvalid)
	_, err = FromFile()
	wantErr(t, err, ErrInvalid)
	for _, update := range []func() (uint64, error){
		func() (uint64, error) { return e.UpdateString() },
		func() (uint64, error) { return e.UpdateFile() },
		func() (uint64, error) { return e.Update() },
	} {
		_, err = update()
		wantErr(t, err, ErrInvalid)
	}
	for _, empty := range []string{"", "# nothing", "[]"} {
		_, err = e.UpdateString(empty)
		wantErr(t, err, ErrConfig)
	}
	_, err = FromFile("")
	wantErr(t, err, ErrConfig)
	if !strings.Contains(err.Error(), "path of document 1 is empty") {
		t.Fatal(err)
	}
	must(e.ChooseHost("plain", 1)).Cancel()
	must(e.UpdateString("clusters: []"))
	_, err = e.ChooseHost("plain", 1)
	wantErr(t, err, ErrNoCluster)
}

func TestConfigErrorParts(t *testing.T) {
	_, err := New(Options{}, Document{Name: "a:1:2: b", Text: "clusters:\n  a: {hots: []}"})
	var found *ConfigError
	if !errors.As(err, &found) {
		t.Fatal(err)
	}
	if found.File != "a:1:2: b" || found.Line != 2 || found.Column != 7 || found.Path != "clusters.a.hots" ||
		found.Found != "hots" || found.Nearest != "hosts" || !strings.Contains(found.Allowed, "composite") ||
		!strings.HasSuffix(found.Error(), found.Message) {
		t.Fatalf("%+v", found)
	}
	_, err = FromFile("/no/such: file.yaml")
	if !errors.As(err, &found) || found.File != "/no/such: file.yaml" || found.Line != 0 {
		t.Fatalf("%+v", found)
	}
}

func TestEndpointsNameTheirCluster(t *testing.T) {
	e := manual(t)
	before := must(e.Info()).Epoch
	_, err := e.ApplyEndpoints("first", "{cluster_name: second}")
	wantErr(t, err, ErrInvalid)
	if !strings.Contains(err.Error(), `"first"`) || !strings.Contains(err.Error(), `"second"`) {
		t.Fatal(err)
	}
	_, err = e.ApplyEndpoints("first", "{endpoints: []}")
	wantErr(t, err, ErrConfig)
	_, err = e.SetHosts("providers", []HostSpec{{Address: "10.0.0.1:80"}})
	wantErr(t, err, ErrInvalid)
	if strings.Contains(err.Error(), "did you mean") || !strings.Contains(err.Error(), "composite") {
		t.Fatal(err)
	}
	if must(e.Info()).Epoch != before {
		t.Fatal("something changed")
	}
	must(e.ApplyEndpoints("first", "{cluster_name: first}"))
	odd := "o\"d\\ \n\u0085<"
	document := must(json.Marshal(map[string]any{"clusters": map[string]any{odd: map[string]any{"hosts": []string{"10.0.0.1:80"}}}}))
	must(e.UpdateString(string(document)))
	must(e.SetHosts(odd, nil))
	if hosts := must(e.Hosts(odd)); string(hosts) != "[]" {
		t.Fatal(string(hosts))
	}
}

func TestARaisedLimitWakesWhoWaits(t *testing.T) {
	text := "clusters: {narrow: {hosts: [10.0.1.1:80], limits: {connections: N}, timeout: 0s}}"
	e := manual(t, strings.Replace(text, "N", "1", 1))
	open, _, err := e.Request(Head{Cluster: "narrow"}).TryChooseHost()
	if err != nil {
		t.Fatal(err)
	}
	defer open.Cancel()
	call := e.Request(Head{Cluster: "narrow"})
	if _, wait, err := call.TryChooseHost(); err != nil || wait.For == 0 {
		t.Fatal(wait, err)
	}
	chosen := make(chan Attempt)
	go func() { chosen <- must(call.ChooseHost(context.Background())) }()
	must(e.UpdateString(strings.Replace(text, "N", "2", 1)))
	select {
	case a := <-chosen:
		must(a.Complete(200, nil))
	case <-time.After(30 * time.Second):
		t.Fatal("nobody was woken")
	}
}

func TestFiftyMegabytes(t *testing.T) {
	padding := strings.Repeat("# padding that nobody reads, line by line\n", 1_200_000)
	e := must(FromString(mesh + padding))
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := FromString(padding + "clusters: 7\n")
	var found *ConfigError
	if !errors.As(err, &found) || found.Line != 1_200_001 {
		t.Fatal(err)
	}
}
