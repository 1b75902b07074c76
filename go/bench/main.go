// Bench measures a stateless choice and its report against an empty call across the same boundary, and prints one JSON
// line per case. ROUNDS (60) rounds run all cases in turn, so that a slow phase of the machine hits all alike.
package main

/*
#cgo CFLAGS: -I${SRCDIR}/../internal/native
#include "nexthop.h"
#cgo noescape nexthop_abi_version
#cgo nocallback nexthop_abi_version
*/
import "C"

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	nexthop "github.com/nexthop/nexthop/go"
)

// The most that choosing and reporting may cost, in empty calls.
const gate = 5.5

const perRound = 20_000

type benchmark struct {
	Face  string  `json:"face"`
	Case  string  `json:"case"`
	Hosts int     `json:"hosts,omitempty"`
	Min   float64 `json:"min_ns"`
	Med   float64 `json:"med_ns"`
	Ratio float64 `json:"ratio,omitempty"`

	call func(n int)
}

func main() {
	rounds := 60
	if text := os.Getenv("ROUNDS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			fmt.Fprintln(os.Stderr, "ROUNDS is a number from 1")
			os.Exit(2)
		}
		rounds = n
	}
	runtime.LockOSThread()
	cases := []*benchmark{{Face: "go", Case: "empty", call: func(n int) {
		for range n {
			C.nexthop_abi_version()
		}
	}}}
	for _, hosts := range []int{3, 100, 1000} {
		e, err := nexthop.FromString(document(hosts))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		defer e.Close()
		cases = append(cases,
			&benchmark{Face: "go", Case: "choose+complete", Hosts: hosts, call: func(n int) { stateless(e, n) }},
			&benchmark{Face: "go", Case: "request", Hosts: hosts, call: func(n int) { request(e, n) }})
	}
	times := make([][]float64, len(cases))
	for round := range rounds + 1 {
		for i, c := range cases {
			begun := time.Now()
			c.call(perRound)
			if round > 0 { // the first warms up
				times[i] = append(times[i], float64(time.Since(begun).Nanoseconds())/perRound)
			}
		}
	}
	failed := false
	for i, c := range cases {
		slices.Sort(times[i])
		c.Min, c.Med = times[i][0], times[i][len(times[i])/2]
		if i > 0 {
			c.Ratio = c.Min / cases[0].Min
			failed = failed || c.Case == "choose+complete" && c.Ratio > gate
		}
		line, _ := json.Marshal(c)
		fmt.Println(string(line))
	}
	if failed {
		fmt.Fprintf(os.Stderr, "choose+complete costs more than %v empty calls\n", gate)
		os.Exit(1)
	}
}

func stateless(e *nexthop.Engine, n int) {
	for range n {
		a, err := e.ChooseHost("web", 1)
		if err == nil {
			_, err = a.Complete(200, nil)
		}
		if err != nil {
			panic(err)
		}
	}
}

func request(e *nexthop.Engine, n int) {
	for range n {
		a, _, err := e.Request(nexthop.Head{Cluster: "web"}).TryChooseHost()
		if err == nil {
			_, err = a.Complete(200, nil)
		}
		if err != nil {
			panic(err)
		}
	}
}

// document is a cluster with everything on that a gateway has on.
func document(hosts int) string {
	var text strings.Builder
	text.WriteString(`static_resources:
  clusters:
  - name: web
    type: STATIC
    lb_policy: LEAST_REQUEST
    circuit_breakers: {thresholds: [{max_connections: 100000, max_pending_requests: 100000, max_requests: 100000, retry_budget: {budget_percent: {value: 20}, min_retry_concurrency: 3}}]}
    outlier_detection: {consecutive_5xx: 5, interval: 10s}
    load_assignment:
      cluster_name: web
      endpoints:
      - lb_endpoints:
`)
	for i := range hosts {
		fmt.Fprintf(&text, "        - endpoint: {address: {socket_address: {address: 10.0.%d.%d, port_value: 80}}}\n", i/250, i%250+1)
	}
	return text.String()
}
