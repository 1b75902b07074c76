package nexthop

import (
	"net/http"
	"testing"
	"time"
)

const models = `
clusters:
  first: {hosts: [10.0.0.1:80], nexthop: {cool_down: {}}}
  second: {hosts: [10.0.0.2:80], nexthop: {cool_down: {}}}
  models:
    composite: [first, second]
    retry:
      on: 5xx
      times: 3
      backoff: {base: 1ms}
      nexthop: {classes: [{when: {status: 429, body_code: quota}, class: quota, next: cluster}]}
`

// TestBeyondEnvoy: a class by the detail, and a refusal that says when.
func TestBeyondEnvoy(t *testing.T) {
	e := manual(t, models)
	r := e.Request(Head{Cluster: "models"})
	first := must(r.ChooseHost(t.Context()))
	limited := Outcome{Status: 429, Header: http.Header{"Retry-After": {"9"}}, Detail: "quota"}
	if v := must(first.Report(limited)); !v.Retry() {
		t.Fatalf("%+v", v)
	}
	if err := e.Advance(time.Millisecond); err != nil {
		t.Fatal(err)
	}
	second := must(r.ChooseHost(t.Context()))
	if first.Host.Address != "10.0.0.1:80" || second.Host.Address != "10.0.0.2:80" {
		t.Fatal(first.Host, second.Host)
	}
	// Without its code it is an answer like any other.
	if v := must(second.Complete(429, http.Header{"Retry-After": {"4.5"}})); v.Retry() {
		t.Fatalf("%+v", v)
	}
	_, err := e.Request(Head{Cluster: "models"}).ChooseHost(t.Context())
	refusal, ok := err.(*Refusal)
	if !ok || refusal.Kind.String() != "cooling" || refusal.RetryAfter != 4500*time.Millisecond {
		t.Fatal(err)
	}
	if refusal.Reply.Status != 503 || refusal.Reply.Headers["retry-after"] != "5" {
		t.Fatalf("%+v", refusal.Reply)
	}
}
