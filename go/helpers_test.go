package nexthop

import (
	"errors"
	"sync"
	"testing"
)

const mesh = `
clusters:
  checkout:
    hosts: [10.0.0.1:80, 10.0.0.2:80, 10.0.0.3:80]
    policy: round_robin
    retry: {on: [5xx, connect-failure], times: 2, backoff: {base: 25ms, max: 250ms}}
    timeout: 2s
  plain: {hosts: [{address: 10.0.6.1:80, weight: 3, zone: b, metadata: {version: v2, shard: 7}}]}
  narrow:
    hosts: [10.0.1.1:80]
    limits: {connections: 1, pending: 1, requests: 10}
    timeout: 0s
  first: {hosts: [10.0.2.1:80]}
  second: {hosts: [10.0.3.1:80]}
  providers: {composite: [first, second]}
  hashed: {hosts: [10.0.4.1:80, 10.0.4.2:80, 10.0.4.3:80], policy: ring_hash, hash: [header: x-user]}
routes:
  - {host: shop.example, path: /pay, cluster: checkout}
`

// manual is an engine whose decisions and clock are the test's.
func manual(t testing.TB, documents ...string) *Engine {
	t.Helper()
	if len(documents) == 0 {
		documents = []string{mesh}
	}
	e, err := New(Options{Workers: 1, Seed: 1, Clock: ClockManual}, texts(documents)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

func live(t testing.TB, e *Engine) uint64 {
	t.Helper()
	info, err := e.Info()
	if err != nil {
		t.Fatal(err)
	}
	return info.LiveRequests
}

// must is for calls that have to work.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func wantErr(t testing.TB, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Fatalf("error is %v, not %v", err, kind)
	}
}

// spawn runs f in a goroutine that all waits for.
func spawn(all *sync.WaitGroup, f func()) {
	all.Add(1)
	go func() {
		defer all.Done()
		f()
	}()
}
