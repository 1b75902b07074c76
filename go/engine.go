package nexthop

// #include "nexthop.h"
import "C"

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// Engine holds clusters, routes and what was learned about them.
type Engine struct {
	id     C.nexthop_engine
	manual bool

	// Copied on write: names are few and asked for in every call.
	targets atomic.Pointer[map[string]uint32]
	wants   wantSets
	hosts   mirror

	mu      sync.Mutex
	waiting map[uint64]*Request // by id; only while they wait
	handed  map[uint64]struct{} // stateless attempts whose body was handed over
	// Length of handed, so that Cancel need not lock.
	handedCount atomic.Int32
	logs        map[*eventLog]struct{} // that run
	cleanup     runtime.Cleanup
}

// Clock of an engine.
type Clock uint8

// Clocks.
const (
	ClockCoarse  Clock = 0 // monotonic, one scheduler tick (1 to 4 ms)
	ClockPrecise Clock = 1 // monotonic, as exact as the machine can
	ClockManual  Clock = 2 // moves by Advance only; for tests
)

// Options tell how an engine is made. The zero value is what most want.
type Options struct {
	Workers int           // 0: one per thread; 1 and a seed: same calls, same decisions
	Seed    uint64        // 0: from the system
	Lease   time.Duration // after a request's deadline, until an unreported attempt counts as lost; 0: 300 s
	Events  int           // kept; 0: 1,024
	Clock   Clock
	Draws   []uint64 // random words in place of worker 1's, then zeros; for tests
}

// Document is a text to read, or a file.
type Document struct {
	Path    string // file, or empty
	Text    string // when there is no path
	Name    string // for messages
	Dialect Dialect
	Runtime bool // JSON of runtime keys, replaced alone

	file bool // an empty path is a mistake, not a text
}

// Dialect of a document.
type Dialect uint8

// Dialects.
const (
	DialectAuto       Dialect = 0
	DialectEnvoy      Dialect = 1
	DialectNexthop    Dialect = 2
	DialectIstio      Dialect = 3
	DialectKubernetes Dialect = 4
	DialectNacos      Dialect = 5
	DialectConsul     Dialect = 6
	DialectEureka     Dialect = 7
	DialectSpring     Dialect = 8
)

// FromFile makes an engine from files with default options.
func FromFile(paths ...string) (*Engine, error) { return New(Options{}, files(paths)...) }

// FromString makes an engine from texts with default options.
func FromString(documents ...string) (*Engine, error) { return New(Options{}, texts(documents)...) }

// New makes an engine. A refused document is a [*ConfigError].
func New(options Options, documents ...Document) (*Engine, error) {
	if found := uint32(C.nexthop_abi_version()); found != C.NEXTHOP_ABI {
		return nil, &UsageError{ErrInternal, fmt.Sprintf("the library has interface %d, this package was built for %d", found, C.NEXTHOP_ABI)}
	}
	if options.Workers < 0 || options.Lease < 0 || options.Events < 0 {
		return nil, &UsageError{ErrInvalid, "an option is negative; 0 asks for its default"}
	}
	if options.Workers > math.MaxInt32 {
		return nil, &UsageError{ErrInvalid, "too many workers: " + strconv.Itoa(options.Workers)}
	}
	var pin runtime.Pinner
	defer pin.Unpin()
	given := C.nexthop_options{
		struct_size: C.sizeof_nexthop_options,
		workers:     C.uint32_t(options.Workers),
		seed:        C.uint64_t(options.Seed),
		lease:       C.uint64_t(options.Lease),
		events:      C.uint64_t(options.Events),
		clock:       C.uint8_t(options.Clock),
	}
	if len(options.Draws) > 0 {
		words := unsafe.SliceData(options.Draws)
		pin.Pin(words)
		given.draws, given.n_draws = (*C.uint64_t)(unsafe.Pointer(words)), C.size_t(len(options.Draws))
	}
	list := cDocuments(&pin, documents)
	e := &Engine{
		manual:  options.Clock == ClockManual,
		waiting: map[uint64]*Request{},
		handed:  map[uint64]struct{}{},
	}
	var id C.nexthop_engine
	err := checked(func() C.nexthop_status {
		return C.nexthop_engine_new(&given, unsafe.SliceData(list), C.size_t(len(list)), &id)
	})
	if err != nil {
		return nil, err
	}
	e.id = id
	e.targets.Store(&map[string]uint32{})
	e.cleanup = runtime.AddCleanup(e, func(id C.nexthop_engine) { C.nexthop_engine_free(id) }, id)
	return e, nil
}

var errNoEngine = &UsageError{ErrInvalid, "the engine is nil or empty; make one with New, FromFile or FromString"}

// made tells whether this is an engine of New; nil and zero values are none.
func (e *Engine) made() bool { return e != nil && e.id.id != 0 }

// Close ends the engine: requests and attempts of it get ErrClosed.
func (e *Engine) Close() error {
	if !e.made() {
		return errNoEngine
	}
	e.endLogs()
	e.cleanup.Stop()
	err := checked(func() C.nexthop_status { return C.nexthop_engine_free(e.id) })
	e.wakeAll()
	return err
}

// UpdateFile replaces all documents by files, whole or not at all.
func (e *Engine) UpdateFile(paths ...string) (epoch uint64, err error) {
	return e.Update(files(paths)...)
}

// UpdateString replaces all documents by texts, whole or not at all.
func (e *Engine) UpdateString(documents ...string) (epoch uint64, err error) {
	return e.Update(texts(documents)...)
}

// Update replaces all documents, whole or not at all. Attempts in flight go on.
func (e *Engine) Update(documents ...Document) (epoch uint64, err error) {
	if !e.made() {
		return 0, errNoEngine
	}
	var pin runtime.Pinner
	defer pin.Unpin()
	list := cDocuments(&pin, documents)
	var new C.uint64_t
	err = e.checked(func() C.nexthop_status {
		return C.nexthop_update(e.id, unsafe.SliceData(list), C.size_t(len(list)), &new)
	})
	e.wakeReady()
	return uint64(new), err
}

// Reload reads those files again that changed, and says whether anything was taken over. Bad content is no error:
// the old documents go on serving, and an event tells.
func (e *Engine) Reload() (bool, error) {
	if !e.made() {
		return false, errNoEngine
	}
	var swapped C.uint32_t
	err := e.checked(func() C.nexthop_status { return C.nexthop_reload(e.id, &swapped, nil) })
	e.wakeReady()
	return swapped != 0, err
}

// EngineInfo is what an engine is right now.
type EngineInfo struct {
	Epoch        uint64 // counts applied updates
	LiveRequests uint64 // not done
	Seed         uint64 // in use
}

// Info tells what the engine is right now.
func (e *Engine) Info() (EngineInfo, error) {
	facts := C.nexthop_engine_facts{struct_size: C.sizeof_nexthop_engine_facts}
	err := e.checked(func() C.nexthop_status { return C.nexthop_engine_info(e.id, &facts) })
	return EngineInfo{uint64(facts.epoch), uint64(facts.live_requests), uint64(facts.seed)}, err
}

// Maintain runs due maintenance and tells when it is due again; 0: not before something happens. Only idle programs
// need it: any call at or past that time runs what is due.
func (e *Engine) Maintain() time.Duration {
	var bits C.uint32_t
	if !e.made() || e.checked(func() C.nexthop_status { return C.nexthop_maintain(e.id, C.NEXTHOP_NOW, &bits) }) != nil {
		return 0
	}
	e.seen(uint32(bits))
	return limit(uint64(C.nexthop_poll_deadline(e.id, C.NEXTHOP_NOW)))
}

// Advance moves a manual clock.
func (e *Engine) Advance(d time.Duration) error {
	if d < 0 {
		return &UsageError{ErrInvalid, "the clock cannot go back"}
	}
	err := e.checked(func() C.nexthop_status { return C.nexthop_advance(e.id, C.uint64_t(d)) })
	switch {
	case err == nil:
		e.Maintain()
		e.wakeAll()
	case errors.Is(err, ErrState):
		return &UsageError{ErrState, "only a manual clock can be moved; make the engine with Options{Clock: ClockManual}"}
	}
	return err
}

// Now is the engine's clock.
func (e *Engine) Now() time.Duration {
	if !e.made() {
		return 0
	}
	return time.Duration(C.nexthop_now(e.id))
}

// checked keeps the engine from being collected, hence closed, during a cold call.
func (e *Engine) checked(call func() C.nexthop_status) error {
	if !e.made() {
		return errNoEngine
	}
	defer runtime.KeepAlive(e)
	return checked(call)
}

// target is the number of a name. Unknown names, which a later update may bring, get the one that no name has, so that
// the engine refuses in its own words.
func (e *Engine) target(name string) (uint32, error) {
	if !e.made() {
		return 0, errNoEngine
	}
	if number, ok := (*e.targets.Load())[name]; ok {
		return number, nil
	}
	return e.resolve(name)
}

func (e *Engine) ask(name string) (number C.uint32_t, err error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	given := cString(&pin, name)
	err = e.checked(func() C.nexthop_status { return C.nexthop_resolve(e.id, given, &number) })
	return number, err
}

// missing tells why nothing is called so, with the nearest name; "" when something is.
func (e *Engine) missing(name string) string {
	_, err := e.ask(name)
	var usage *UsageError
	if errors.Is(err, ErrNotFound) && errors.As(err, &usage) {
		return usage.sentence
	}
	return ""
}

func (e *Engine) resolve(name string) (uint32, error) {
	number, err := e.ask(name)
	if errors.Is(err, ErrNotFound) {
		return C.NEXTHOP_NO_SUCH_TARGET, nil
	}
	if err != nil {
		return 0, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	old := *e.targets.Load()
	grown := make(map[string]uint32, len(old)+1)
	for name, number := range old {
		grown[name] = number
	}
	grown[name] = uint32(number)
	e.targets.Store(&grown)
	return uint32(number), nil
}

func files(paths []string) []Document {
	documents := make([]Document, len(paths))
	for i, path := range paths {
		documents[i].Path, documents[i].file = path, true
	}
	return documents
}

func texts(texts []string) []Document {
	documents := make([]Document, len(texts))
	for i, text := range texts {
		documents[i].Text = text
	}
	return documents
}

func cDocuments(pin *runtime.Pinner, documents []Document) []C.nexthop_document {
	list := make([]C.nexthop_document, len(documents))
	for i, d := range documents {
		list[i] = C.nexthop_document{struct_size: C.sizeof_nexthop_document, dialect: C.uint8_t(d.Dialect)}
		list[i].name = cString(pin, d.Name)
		switch {
		case d.Path != "" || d.file:
			list[i].kind, list[i].text = C.NEXTHOP_DOCUMENT_PATH, cString(pin, d.Path)
		case d.Runtime:
			list[i].kind, list[i].text = C.NEXTHOP_DOCUMENT_RUNTIME, cString(pin, d.Text)
		default:
			list[i].text = cString(pin, d.Text)
		}
	}
	if len(list) > 0 {
		pin.Pin(&list[0])
	}
	return list
}

// cString lends a string to C until pin is let go.
func cString(pin *runtime.Pinner, s string) C.nexthop_str {
	if s == "" {
		return C.nexthop_str{}
	}
	bytes := unsafe.StringData(s)
	pin.Pin(bytes)
	return C.nexthop_str{ptr: (*C.char)(unsafe.Pointer(bytes)), len: C.size_t(len(s))}
}

// limit turns nanoseconds of the library into a duration, whose 0 is no limit.
func limit(ns uint64) time.Duration {
	switch {
	case ns >= 1<<63-1:
		return 0
	case ns == 0:
		return 1 // over, which is not the same as none
	}
	return time.Duration(ns)
}
