package nexthop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDocuments(t *testing.T) {
	_, err := FromString("clusters: {a: {hosts: [10.0.0.1:80], polcy: maglev}}")
	wantErr(t, err, ErrConfig)
	var config *ConfigError
	if !errors.As(err, &config) || config.Line != 1 || !strings.Contains(config.Error(), "policy") {
		t.Fatalf("%#v", config)
	}
	_, err = FromFile(t.TempDir())
	wantErr(t, err, ErrConfig)
	if !errors.As(err, &config) || !strings.Contains(err.Error(), "directory") {
		t.Fatal(err)
	}
	_, err = FromFile(filepath.Join(t.TempDir(), "none.yaml"))
	wantErr(t, err, ErrConfig)
	_, err = New(Options{Workers: -1}, Document{Text: mesh})
	wantErr(t, err, ErrInvalid)
	_, err = New(Options{Clock: 9}, Document{Text: mesh})
	wantErr(t, err, ErrInvalid)
	if _, err = FromString(""); err == nil {
		t.Fatal("an empty document")
	}
}

func TestUpdateKeepsWhatIsOpen(t *testing.T) {
	e := manual(t)
	open := must(e.Request(Head{Cluster: "checkout"}).ChooseHost(t.Context()))
	if _, err := e.UpdateString("clusters: 7"); !errors.Is(err, ErrConfig) {
		t.Fatal(err)
	}
	if _, err := e.UpdateString("clusters: {first: {hosts: [10.0.2.1:80]}}"); err != nil {
		t.Fatal(err)
	}
	_, err := e.ChooseHost("checkout", 1)
	wantErr(t, err, ErrNoCluster)
	if v, err := open.Complete(200, nil); err != nil || v.Action != Forward {
		t.Fatal(v, err)
	}
	must(e.UpdateString(mesh))
	attempt := must(e.ChooseHost("checkout", 1))
	must(attempt.Complete(200, nil))
	events := must(e.Events())
	if len(events) == 0 || !bytes.Contains(bytes.Join(rawLines(events), nil), []byte("config_rejected")) {
		t.Fatalf("%s", events)
	}
	if rest := must(e.Events()); len(rest) != 0 {
		t.Fatal("events are taken once")
	}
}

func rawLines(events []json.RawMessage) (lines [][]byte) {
	for _, event := range events {
		lines = append(lines, event)
	}
	return lines
}

func TestReload(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mesh.yaml")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("clusters: {a: {hosts: [10.0.0.1:80]}}")
	e := must(New(Options{Clock: ClockManual}, Document{Path: path}))
	defer e.Close()
	if must(e.Reload()) {
		t.Fatal("nothing changed")
	}
	write("clusters: {a: {hosts: [10.0.0.1:80]}, longer: {hosts: [10.0.0.2:80]}}")
	if !must(e.Reload()) {
		t.Fatal("the file changed")
	}
	must(e.ChooseHost("longer", 1)).Cancel()
	write("clusters: {a: {hosts: [10.0.0.1:80]}, longer: [oops")
	if must(e.Reload()) {
		t.Fatal("bad content is not taken over")
	}
	must(e.ChooseHost("longer", 1)).Cancel()
}

func TestHostMirror(t *testing.T) {
	e := manual(t)
	one, two := must(e.ChooseHost("plain", 1)), must(e.ChooseHost("plain", 1))
	defer one.Cancel()
	defer two.Cancel()
	if one.Host != two.Host {
		t.Fatal("the same host is the same object")
	}
	h := one.Host
	if h.Address != "10.0.6.1:80" || h.Port != 80 || h.Cluster != "plain" || h.Weight != 3 || h.Zone != "b" || h.Secure {
		t.Fatalf("%+v", h)
	}
	if m := h.Metadata(); m["version"] != "v2" || m["shard"] != 7.0 {
		t.Fatal(m)
	}
	epoch := must(e.Apply("plain", HostChange{Op: HostModify, Fields: FieldWeight, Host: HostSpec{Address: "10.0.6.1:80", Weight: 9}}))
	if epoch == 0 {
		t.Fatal("no epoch")
	}
	changed := must(e.ChooseHost("plain", 1))
	defer changed.Cancel()
	if changed.Host == h || changed.Host.Weight != 9 || h.Weight != 3 {
		t.Fatalf("%+v", changed.Host)
	}
	must(e.SetHosts("plain", []HostSpec{{Address: "10.7.0.1:81", Metadata: map[string]any{"a": []int{1}}}, {Address: "10.7.0.2:81"}}))
	seen := map[string]bool{}
	for range 50 {
		a := must(e.ChooseHost("plain", 1))
		seen[a.Host.Address] = true
		must(a.Complete(200, nil))
	}
	if len(seen) != 2 || !seen["10.7.0.1:81"] {
		t.Fatal(seen)
	}
	_, err := e.SetHosts("none", nil)
	wantErr(t, err, ErrNotFound)
	_, err = e.SetHosts("plain", []HostSpec{{Address: "nonsense"}})
	wantErr(t, err, ErrInvalid)
	_, err = e.SetHosts("plain", []HostSpec{{Address: "10.7.0.1:81", Priority: 129}})
	wantErr(t, err, ErrInvalid)
	must(e.ApplyEndpoints("plain", `{"cluster_name": "plain", "endpoints": [{"lb_endpoints": [{"endpoint": {"address": {"socket_address": {"address": "10.8.0.1", "port_value": 80}}}}]}]}`))
	if a := must(e.ChooseHost("plain", 1)); a.Host.Address != "10.8.0.1:80" {
		t.Fatal(a.Host)
	}
}

func TestManyHosts(t *testing.T) {
	e := manual(t)
	hosts := make([]HostSpec, 20_000)
	for i := range hosts {
		hosts[i] = HostSpec{Address: fmt.Sprintf("10.%d.%d.%d:80", i>>16, i>>8&255, i&255), Zone: "z"}
	}
	must(e.SetHosts("checkout", hosts))
	seen := map[string]bool{}
	for range 5000 {
		a := must(e.ChooseHost("checkout", 1))
		seen[a.Host.Address] = true
		must(a.Complete(200, nil))
	}
	if len(seen) != 5000 {
		t.Fatal(len(seen), "different hosts in 5,000 rounds of round robin")
	}
}

func TestTexts(t *testing.T) {
	e := manual(t)
	a := must(e.ChooseHost("plain", 1))
	must(a.Complete(200, nil))
	numbers := map[string]float64{}
	for name, value := range e.Stats {
		numbers[name] = value
	}
	if len(numbers) == 0 {
		t.Fatal("no numbers")
	}
	var out bytes.Buffer
	if err := e.Prometheus(&out); err != nil || !strings.Contains(out.String(), "plain") {
		t.Fatal(err, out.String())
	}
	var effective struct{ Values []map[string]any }
	if err := json.Unmarshal(must(e.Effective("checkout")), &effective); err != nil || len(effective.Values) == 0 {
		t.Fatal(err, effective)
	}
	if why := must(e.Explain(Head{Cluster: "checkout"})); why["hosts"] == nil {
		t.Fatal(why)
	}
	if whole := string(must(e.WholeLoadReport())); !strings.Contains(whole, "default acts") {
		t.Fatal(whole)
	}
	var counted Metric
	for _, metric := range must(e.Metrics()) {
		if metric.Name == "cluster.upstream_rq" && metric.Attributes["envoy.cluster_name"] == "plain" {
			counted = metric
		}
	}
	if counted.Type != "counter" || counted.Value != 1 || counted.Attributes["envoy.response_code"] != "200" {
		t.Fatal(counted)
	}
	_, err := e.Effective("none")
	wantErr(t, err, ErrNotFound)
	var hosts any
	if err := json.Unmarshal(must(e.Hosts("checkout")), &hosts); err != nil {
		t.Fatal(err)
	}
	if Version() == "" {
		t.Fatal("no version")
	}
	if (Forward.String() + Failure(4).String() + RefusedOverflow.String() + WaitBackoff.String()) != "forwardremote_resetoverflowbackoff" {
		t.Fatal("names")
	}
	if Flags(0).String() != "-" || Flags(1<<1|1<<15).String() != "UH,URX" || Action(77).String() != "unknown(77)" {
		t.Fatal("names")
	}
}

func TestClosed(t *testing.T) {
	e := manual(t)
	a := must(e.ChooseHost("plain", 1))
	r := e.Request(Head{Cluster: "checkout"})
	must(r.ChooseHost(t.Context()))
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	wantErr(t, e.Close(), ErrClosed)
	_, err := a.Complete(200, nil)
	wantErr(t, err, ErrClosed)
	a.Cancel()
	_, err = r.ChooseHost(t.Context())
	wantErr(t, err, ErrClosed)
	r.Close()
	_, err = e.ChooseHost("plain", 1)
	wantErr(t, err, ErrClosed)
	_, err = e.UpdateString(mesh)
	wantErr(t, err, ErrClosed)
	_, err = e.Info()
	wantErr(t, err, ErrClosed)
	wantErr(t, e.Advance(1), ErrClosed)
}
