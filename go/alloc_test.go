package nexthop

import (
	"net/http"
	"testing"
)

// Race detector and address sanitizer count their own.
func TestAllocations(t *testing.T) {
	if instrumented {
		t.Log("allocations are counted without instruments only")
		return
	}
	e := manual(t)
	header := http.Header{"X-User": {"42"}}
	stateless := func() {
		a, err := e.ChooseHost("plain", 1)
		if err != nil {
			panic(err)
		}
		if _, err = a.Complete(200, header); err != nil {
			panic(err)
		}
	}
	streamed := func() {
		a, err := e.ChooseHost("plain", 1)
		if err != nil {
			panic(err)
		}
		if _, err = a.OnHeaders(200, header); err != nil {
			panic(err)
		}
		if err = a.End(nil); err != nil {
			panic(err)
		}
	}
	head := Head{Cluster: "hashed", Path: "/pay", Header: header}
	request := func() {
		r := e.Request(head)
		a, err := r.ChooseHost(t.Context())
		if err != nil {
			panic(err)
		}
		if _, err = a.Complete(200, header); err != nil {
			panic(err)
		}
		r.Close()
	}
	for name, c := range map[string]struct {
		call func()
		want float64
	}{
		"stateless": {stateless, 0},
		"streamed":  {streamed, 0},
		"request":   {request, 1}, // the Request
	} {
		c.call()
		if found := testing.AllocsPerRun(1000, c.call); found != c.want {
			t.Errorf("%s: %v allocations, not %v", name, found, c.want)
		}
	}
}
