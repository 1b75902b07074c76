package nexthop

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

// Every method of a nil or zero value answers; those that can say why not do.
func TestZeroValues(t *testing.T) {
	silent := map[string]bool{"Maintain": true, "Now": true, "Request": true, "Stats": true, "ResponseHeaders": true, "Reply": true,
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
	for _, number := range []int{0, -1, math.MinInt, math.MaxInt, 1<<32 + 1} {
		_, err := e.ChooseHost("plain", number)
		wantErr(t, err, ErrInvalid)
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
