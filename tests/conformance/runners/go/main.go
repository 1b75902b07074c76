// The player over the Go face: script on standard input, trace on standard output.
package main

import (
	"bufio"
	"bytes"
	"container/heap"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/nexthop/nexthop/go"
)

type (
	rule struct {
		host, prefix  string
		attempt, used int
		cycle         bool
		plans         []string
	}
	batch struct {
		open    int
		gap     time.Duration
		clients bool
		waiting []*call
	}
	call struct {
		index, path           string
		request               *nexthop.Request
		batch                 *batch
		tries                 []*try
		asking                int
		queued, done, refused bool
	}
	try struct {
		call           *call
		attempt        nexthop.Attempt
		open, answered bool
		sent, last     time.Duration
		idle           time.Duration // 0: none
	}
	act struct {
		after time.Duration
		words []string
	}
	kind  int
	event struct {
		time     time.Duration
		sequence int
		kind     kind
		call     *call
		try      *try
		asking   int
		whole    bool
		words    []string
	}
	queue []event
)

const (
	begin kind = iota
	ask
	connected
	acting
	limit
	idle
)

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].time < q[j].time || q[i].time == q[j].time && q[i].sequence < q[j].sequence
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(e any)   { *q = append(*q, e.(event)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

type player struct {
	out      *bufio.Writer
	engine   *nexthop.Engine
	now      time.Duration
	sequence int
	connect  time.Duration // -1: not noted
	docs     []string
	plans    map[string][]act
	plan     string
	rules    []*rule
	calls    int
	heads    [][]string
	waiting  []*call
	events   queue
}

func (p *player) say(words ...string) {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(words); err != nil {
		panic(err)
	}
	p.out.Write(line.Bytes())
}

func number[T int | uint64 | uint32 | uint16 | time.Duration](n T) string {
	return strconv.FormatInt(int64(n), 10)
}

func dash(limit time.Duration) string {
	if limit == 0 {
		return "-"
	}
	return number(limit)
}

func integer(word string) int64 {
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

func flat(headers map[string]string) []string {
	var names, words []string
	for name := range headers {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		words = append(words, name, headers[name])
	}
	return words
}

func local(reply nexthop.LocalReply) []string {
	return append([]string{number(reply.Status), reply.Flags.String(), reply.Details, reply.Body}, flat(reply.Headers)...)
}

func header(pairs []string) http.Header {
	header := http.Header{}
	for i := 0; i+1 < len(pairs); i += 2 {
		header.Add(strings.TrimPrefix(pairs[i], "h:"), pairs[i+1])
	}
	return header
}

func grpc(word string) *int {
	if word == "" {
		return nil
	}
	status := int(integer(word))
	return &status
}

func (p *player) reset() {
	if p.engine != nil {
		p.engine.Close()
	}
	*p = player{out: p.out, plans: map[string][]act{}, connect: -1}
}

func (p *player) command(words []string) {
	name, args := words[0], words[1:]
	switch {
	case name == "case":
		p.reset()
		p.say("case", args[0])
		p.out.Flush()
	case name == "doc":
		p.docs = append(p.docs, args[0])
	case name == "open":
		seed, _ := strconv.ParseUint(args[0], 10, 64)
		options := nexthop.Options{Seed: seed, Workers: 1, Clock: nexthop.ClockManual}
		for _, word := range strings.FieldsFunc(args[1], func(r rune) bool { return r == ',' }) {
			draw, _ := strconv.ParseUint(word, 10, 64)
			options.Draws = append(options.Draws, draw)
		}
		p.load(name, func(docs []nexthop.Document) (err error) {
			p.engine, err = nexthop.New(options, docs...)
			return err
		})
	case p.engine == nil:
	case name == "plan":
		p.plan = args[0]
		p.plans[p.plan] = nil
	case name == "act":
		p.plans[p.plan] = append(p.plans[p.plan], act{time.Duration(integer(args[0])), args[1:]})
	case name == "drop":
		var kept []*rule
		for _, r := range p.rules {
			if r.host != args[0] {
				kept = append(kept, r)
			}
		}
		p.rules = kept
	case name == "rule":
		p.rules = append(p.rules, &rule{args[0], args[2], int(integer(args[1])), 0, args[3] == "cycle", args[4:]})
	case name == "connect":
		p.connect = time.Duration(integer(args[0]))
	case name == "request":
		p.heads = append(p.heads, args)
	case name == "run":
		p.run(int(integer(args[0])), time.Duration(integer(args[1])), time.Duration(integer(args[2])), args[3] == "wait")
	case name == "sleep":
		until := p.now + time.Duration(integer(args[0]))
		for len(p.events) > 0 && p.events[0].time <= until {
			p.step()
		}
		p.advance(until)
	case name == "endpoints":
		p.load(name, func([]nexthop.Document) error {
			_, err := p.engine.ApplyEndpoints(args[0], args[1])
			return err
		})
		p.pump()
	case name == "update":
		p.load(name, func(docs []nexthop.Document) error {
			_, err := p.engine.Update(docs...)
			return err
		})
		p.pump()
	case name == "stats":
		all := map[string]string{}
		p.engine.Stats(func(name string, value float64) bool {
			all[name] = strconv.FormatFloat(value, 'f', -1, 64)
			return true
		})
		words := flat(all)
		for i := 0; i < len(words); i += 2 {
			p.say("stat", args[0], words[i], words[i+1])
		}
	case name == "events":
		events, err := p.engine.Events()
		if err != nil {
			panic(err)
		}
		for _, text := range events {
			var each map[string]any
			if json.Unmarshal(text, &each) != nil || each["action"] == nil {
				continue
			}
			line := []string{"event", args[0]}
			for _, key := range []string{"cluster_name", "upstream_url", "action", "type", "num_ejections", "enforced"} {
				if value, ok := each[key]; ok {
					line = append(line, fmt.Sprint(value))
				} else {
					line = append(line, "")
				}
			}
			p.say(line...)
		}
	default:
		panic(name)
	}
}

func (p *player) load(name string, action func([]nexthop.Document) error) {
	var docs []nexthop.Document
	if name != "endpoints" {
		for _, text := range p.docs {
			docs = append(docs, nexthop.Document{Text: text})
		}
		p.docs = nil
	}
	if err := action(docs); err == nil {
		p.say(name, "ok")
	} else if errors.Is(err, nexthop.ErrConfig) {
		fmt.Fprintln(os.Stderr, err)
		p.say(name, "refused")
	} else {
		panic(err)
	}
}

func (p *player) at(e event) {
	p.sequence++
	e.sequence = p.sequence
	heap.Push(&p.events, e)
}

func (p *player) advance(to time.Duration) {
	if to > p.now {
		if err := p.engine.Advance(to - p.now); err != nil {
			panic(err)
		}
		p.now = to
	}
}

func (p *player) run(clients int, gap, stagger time.Duration, wait bool) {
	b := &batch{open: len(p.heads), gap: gap, clients: clients > 0}
	for i, words := range p.heads {
		c := &call{index: strconv.Itoa(p.calls), path: "/", batch: b}
		p.calls++
		c.request = p.engine.Request(head(words, c))
		b.waiting = append(b.waiting, c)
		if clients == 0 {
			p.at(event{time: p.now + time.Duration(i)*stagger, kind: begin, call: c})
		}
	}
	p.heads = nil
	for i := 0; i < clients; i++ {
		p.next(b, 0)
	}
	for wait && b.open > 0 && len(p.events) > 0 {
		p.step()
	}
}

func head(words []string, c *call) nexthop.Head {
	var h nexthop.Head
	var pairs []string
	for i := 0; i+1 < len(words); i += 2 {
		switch key, value := words[i], words[i+1]; key {
		case "cluster":
			h.Cluster = value
		case "method":
			h.Method = value
		case "authority":
			h.Authority = value
		case "path":
			h.Path, c.path = value, value
		case "source":
			h.Source = value
		case "local":
			h.Local = value
		case "key":
			h.Key = []byte(value)
		case "timeout":
			h.Timeout = time.Duration(integer(value))
		case "internal":
			h.Internal = true
		case "override_host":
			h.OverrideHost = value
		case "metadata":
			if err := json.Unmarshal([]byte(value), &h.Metadata); err != nil {
				panic(err)
			}
		default:
			pairs = append(pairs, key, value)
		}
	}
	h.Header = header(pairs)
	return h
}

func (p *player) next(b *batch, gap time.Duration) {
	if b.clients && len(b.waiting) > 0 {
		p.at(event{time: p.now + gap, kind: begin, call: b.waiting[0]})
		b.waiting = b.waiting[1:]
	}
}

func (p *player) step() {
	e := heap.Pop(&p.events).(event)
	if e.kind == connected && !e.call.queued || e.kind == ask && (e.call.done || e.call.asking != e.asking) ||
		e.try != nil && !e.try.open {
		return
	}
	p.advance(e.time)
	switch e.kind {
	case begin, ask:
		p.ask(e.call)
	case connected:
		if err := e.call.request.Note(nexthop.NoteConnected); err != nil {
			panic(err)
		}
	case acting:
		e.try.last = p.now
		p.act(e.try, e.words)
		if e.try.open && e.try.idle != 0 {
			p.at(event{time: p.now + e.try.idle, kind: idle, try: e.try})
		}
	case limit:
		if e.whole || !e.try.answered {
			p.act(e.try, []string{"fail", "timeout"})
		}
	case idle:
		// Whoever hedges gives no attempt up before its headers.
		if (e.try.answered || e.try.attempt.HedgeAfter == 0) && p.now-e.try.last >= e.try.idle {
			p.act(e.try, []string{"fail", "per_try_idle_timeout"})
		}
	}
	p.pump()
}

func (p *player) pump() {
	for _, c := range append([]*call(nil), p.waiting...) {
		if c.queued {
			p.ask(c)
		}
	}
}

func (p *player) unqueue(c *call) {
	if !c.queued {
		return
	}
	c.queued = false
	for i, queued := range p.waiting {
		if queued == c {
			p.waiting = append(p.waiting[:i:i], p.waiting[i+1:]...)
			return
		}
	}
}

func (p *player) misuse(c *call) {
	p.say("misuse", c.index, number(p.now))
	p.done(c)
}

func (p *player) ask(c *call) {
	c.asking++
	attempt, wait, err := c.request.TryChooseHost()
	var refusal *nexthop.Refusal
	switch {
	case errors.As(err, &refusal):
		p.unqueue(c)
		c.refused = true
		line := []string{"refused", c.index, refusal.Kind.String(), refusal.Resource.String(), number(p.now)}
		p.say(append(line, local(refusal.Reply)...)...)
		p.done(c)
	case err != nil:
		p.misuse(c)
	case wait.Reason != 0:
		queued := wait.Reason == nexthop.WaitQueue
		if !queued {
			p.unqueue(c)
		}
		if !c.queued {
			told := dash(wait.For)
			if queued {
				told = "-"
			}
			p.say("wait", c.index, wait.Reason.String(), told, number(p.now))
		}
		if queued && !c.queued {
			c.queued = true
			p.waiting = append(p.waiting, c)
			if p.connect >= 0 {
				p.at(event{time: p.now + p.connect, kind: connected, call: c})
			}
		}
		if wait.For != 0 {
			p.at(event{time: p.now + wait.For, kind: ask, call: c, asking: c.asking})
		}
	default:
		p.unqueue(c)
		added := attempt.Headers()
		delete(added, "host")
		line := []string{"go", c.index, number(attempt.Number), attempt.Host.Address, attempt.Host.Cluster, number(p.now),
			dash(attempt.Timeout), dash(attempt.Remaining), dash(attempt.IdleTimeout()), dash(attempt.HedgeAfter)}
		p.say(append(line, flat(added)...)...)
		p.send(c, attempt)
	}
}

func (p *player) send(c *call, attempt nexthop.Attempt) {
	on := &try{call: c, attempt: attempt, open: true, sent: p.now, last: p.now, idle: attempt.IdleTimeout()}
	c.tries = append(c.tries, on)
	if attempt.Timeout != 0 {
		p.at(event{time: p.now + attempt.Timeout, kind: limit, try: on})
	}
	if attempt.Remaining != 0 {
		p.at(event{time: p.now + attempt.Remaining, kind: limit, try: on, whole: true})
	}
	if on.idle != 0 {
		p.at(event{time: p.now + on.idle, kind: idle, try: on})
	}
	if attempt.HedgeAfter != 0 {
		p.at(event{time: p.now + attempt.HedgeAfter, kind: ask, call: c, asking: c.asking})
	}
	for _, r := range p.rules {
		if r.host != "" && r.host != attempt.Host.Address || r.attempt != 0 && r.attempt != attempt.Number ||
			!strings.HasPrefix(c.path, r.prefix) {
			continue
		}
		turn := r.used
		if r.cycle {
			turn %= len(r.plans)
		} else if turn >= len(r.plans) {
			turn = len(r.plans) - 1
		}
		r.used++
		at := p.now
		for _, each := range p.plans[r.plans[turn]] {
			at += each.after
			p.at(event{time: at, kind: acting, try: on, words: each.words})
		}
		return
	}
}

func (p *player) act(on *try, words []string) {
	c, attempt, name, args := on.call, on.attempt, words[0], words[1:]
	var verdict nexthop.Verdict
	var err error
	told := args
	switch name {
	case "headers", "complete":
		status := int(integer(args[0]))
		if name == "headers" {
			verdict, err = attempt.OnHeaders(status, header(args[2:]))
			told = []string{args[0] + "+"}
		} else {
			verdict, err = attempt.Report(nexthop.Outcome{Status: status, GRPC: grpc(args[1]), Header: header(args[2:])})
		}
	case "fail":
		verdict, err = attempt.Fail(failures[args[0]])
	case "end":
		if err = attempt.End(&nexthop.Outcome{GRPC: grpc(args[0]), Header: header(args[1:])}); err == nil {
			on.open = false
			p.say("end", c.index, number(attempt.Number), number(p.now))
			p.done(c)
			return
		}
	case "note":
		if err = attempt.Note(notes[args[0]]); err == nil {
			return
		}
	default:
		c.request.Close()
		p.say("gone", c.index, number(p.now))
		p.done(c)
		return
	}
	if err != nil && errors.Is(err, nexthop.ErrEnded) || errors.Is(err, nexthop.ErrState) || errors.Is(err, nexthop.ErrInvalid) {
		p.misuse(c)
		return
	}
	p.say("verdict", c.index, number(attempt.Number), told[0], verdict.Action.String(), verdict.Reason.String(),
		number(int(verdict.After.Milliseconds())), number(verdict.Status), verdict.Flags.String(), number(p.now),
		number(p.now-on.sent))
	if verdict.Action == nexthop.Forward && name == "headers" && !on.answered {
		on.answered = true
		for _, other := range c.tries {
			other.open = other == on
		}
		return
	}
	on.open = false
	if verdict.Action == nexthop.Retry {
		p.ask(c)
	} else if verdict.Action != nexthop.Discard {
		p.done(c)
	}
}

func (p *player) done(c *call) {
	if reply, ok := c.request.Reply(); ok && !c.refused {
		p.say(append([]string{"reply", c.index}, local(reply)...)...)
	}
	p.say(append([]string{"done", c.index, number(p.now)}, flat(c.request.ResponseHeaders())...)...)
	p.unqueue(c)
	c.done = true
	for _, on := range c.tries {
		on.open = false
	}
	c.batch.open--
	p.next(c.batch, c.batch.gap)
}

var notes = map[string]nexthop.Note{}

var failures = map[string]error{}

// archive is set by the linker, so that a new archive means a new program.
var archive string

func main() {
	for failure := nexthop.Failure(1); failure <= 18; failure++ {
		failures[failure.String()] = failure
	}
	for note := nexthop.NoteConnected; note <= nexthop.NoteInterim; note++ {
		notes[note.String()] = note
	}
	p := &player{out: bufio.NewWriterSize(os.Stdout, 1<<16)}
	p.reset()
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var words []string
		if err := json.Unmarshal(lines.Bytes(), &words); err != nil {
			panic(err)
		}
		p.command(words)
	}
	p.out.Flush()
}
