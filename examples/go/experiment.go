// Experiment sends requests the way a gateway does: Envoy's own configuration file picks cluster, host and policy, and
// net/http carries the attempts. It prints one JSON line per experiment.
//
//	CONFIG=../envoy.yaml REQUESTS=400 go run experiment.go
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	nexthop "github.com/nexthop/nexthop/go"
)

// lab is any port of the backends; each of them resets and counts for all.
const lab = "http://127.0.0.1:18101/__lab/"

type result struct {
	Lang            string                    `json:"lang"`
	Experiment      string                    `json:"experiment"`
	Requests        int                       `json:"requests"`
	Success         int                       `json:"success"`
	Attempts        int                       `json:"attempts"`
	Retries         int                       `json:"retries"`
	BackendRequests int                       `json:"backend_requests"`
	PerAttempt      float64                   `json:"us_per_attempt"`
	AnsweredBy      map[string]map[string]int `json:"answered_by"`

	inside time.Duration // in nexthop, without HTTP and waiting
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	requests, err := strconv.Atoi(cmp.Or(os.Getenv("REQUESTS"), "400"))
	if err != nil {
		return fmt.Errorf("REQUESTS: %w", err)
	}
	// One worker: one sequence of decisions whichever thread the goroutine runs on, as with Envoy's --concurrency 1.
	mesh, err := nexthop.New(nexthop.Options{Workers: 1}, nexthop.Document{Path: cmp.Or(os.Getenv("CONFIG"), "../envoy.yaml")})
	if err != nil {
		return err
	}
	defer mesh.Close()
	for _, name := range []string{"a", "b", "c", "chain"} {
		n := requests
		if name == "chain" {
			n = 60
		}
		if err := experiment(mesh, name, n); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func experiment(mesh *nexthop.Engine, name string, requests int) error {
	reset, err := http.Post(lab+"reset", "", nil)
	if err != nil {
		return err
	}
	reset.Body.Close()
	r := &result{Lang: "go", Experiment: name, Requests: requests, AnsweredBy: map[string]map[string]int{}}
	for i := range requests {
		header := http.Header{}
		if name == "chain" {
			header.Set("X-Fail", strconv.Itoa(i%3))
		}
		status, err := r.send(context.Background(), mesh, "/"+name, header)
		if err != nil {
			return err
		}
		if status < 500 {
			r.Success++
		}
		fmt.Fprintf(os.Stderr, "\rgo  %s  %d/%d", name, i+1, requests)
	}
	fmt.Fprintln(os.Stderr)
	if r.BackendRequests, err = received(); err != nil {
		return err
	}
	r.Retries = r.Attempts - requests
	r.PerAttempt = float64(r.inside.Nanoseconds()) / 1000 / float64(r.Attempts)
	return json.NewEncoder(os.Stdout).Encode(r)
}

// send is the whole loop: choose, send, report, and again while the verdict says so.
func (r *result) send(ctx context.Context, mesh *nexthop.Engine, path string, header http.Header) (int, error) {
	call := mesh.Request(nexthop.Head{Method: "GET", Authority: "lab.example", Path: path, Header: header})
	defer call.Close()
	for {
		attempt, err := r.choose(ctx, call)
		if err != nil {
			return 0, err
		}
		r.Attempts++
		request, err := http.NewRequestWithContext(ctx, "GET", attempt.URL(""), nil)
		if err != nil {
			return 0, err
		}
		request.Host, request.Header = "lab.example", header.Clone()
		attempt.SetHeaders(request.Header)
		response, err := http.DefaultClient.Do(request)

		begun := time.Now()
		var verdict nexthop.Verdict
		if err != nil {
			verdict, _ = attempt.Fail(err)
		} else if verdict, err = attempt.Complete(response.StatusCode, response.Header); err != nil {
			return 0, err
		}
		r.inside += time.Since(begun)
		if response != nil {
			// Read to its end, so that the connection is kept.
			_, _ = io.Copy(io.Discard, response.Body)
			response.Body.Close()
		}
		if !verdict.Retry() {
			number := strconv.Itoa(attempt.Number)
			if r.AnsweredBy[number] == nil {
				r.AnsweredBy[number] = map[string]int{}
			}
			r.AnsweredBy[number][attempt.Host.Address]++
			return verdict.Status, nil
		}
	}
}

// choose measures the choice without its waiting: ChooseHost alone would do.
func (r *result) choose(ctx context.Context, call *nexthop.Request) (nexthop.Attempt, error) {
	begun := time.Now()
	attempt, wait, err := call.TryChooseHost()
	r.inside += time.Since(begun)
	if err != nil || wait.For == 0 {
		return attempt, err
	}
	return call.ChooseHost(ctx) // in back-off
}

// received is how many requests the backends really got.
func received() (total int, err error) {
	response, err := http.Get(lab + "counts")
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	counts := map[string]int{}
	if err := json.NewDecoder(response.Body).Decode(&counts); err != nil {
		return 0, err
	}
	for _, n := range counts {
		total += n
	}
	return total, nil
}
