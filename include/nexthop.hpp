// nexthop for C++17: move-only owners over nexthop.h, header only, no exceptions of its own.
// SPDX-License-Identifier: Apache-2.0
#ifndef NEXTHOP_HPP
#define NEXTHOP_HPP

#include "nexthop.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace nexthop {

// Why a call did nothing.
struct Error {
  nexthop_status status;
  // One sentence, with the place.
  std::string message;
  // Of a refused document: its name, from 1 the line and the column, the place inside it, what stands there, what may,
  // the known name nearest to an unknown one. Of an unreadable file: the file. Else empty and 0.
  std::string file = {};
  uint32_t line = 0, column = 0;
  std::string path = {}, found = {}, allowed = {}, nearest = {};

  // The calling thread's last one.
  static Error last(nexthop_status status) {
    const auto grown = [](std::string& text, auto ask) {
      text.resize(256);
      size_t len = 0;
      while (ask(text.data(), text.size(), &len) == NEXTHOP_SHORT) text.resize(len);
      text.resize(len);
    };
    Error error{status, {}};
    grown(error.message, [](char* b, size_t c, size_t* l) { return nexthop_last_error(b, c, l); });
    if (status != NEXTHOP_CONFIG && status != NEXTHOP_IO) return error;
    nexthop_error_parts parts{};
    parts.struct_size = sizeof parts;
    std::string buffer;
    grown(buffer, [&](char* b, size_t c, size_t* l) { return nexthop_last_error_parts(&parts, b, c, l); });
    const auto text = [](nexthop_str part) { return part.ptr ? std::string(part.ptr, part.len) : std::string(); };
    error.line = parts.line, error.column = parts.column;
    error.file = text(parts.file), error.path = text(parts.path), error.found = text(parts.found);
    error.allowed = text(parts.allowed), error.nearest = text(parts.nearest);
    return error;
  }
};

// A value or an Error.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : held_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : held_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const noexcept { return held_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }
  // Only when ok(): std::bad_variant_access otherwise.
  T& value() & { return std::get<0>(held_); }
  const T& value() const& { return std::get<0>(held_); }
  T&& value() && { return std::get<0>(std::move(held_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Error& error() const { return std::get<1>(held_); }

 private:
  std::variant<T, Error> held_;
};

inline nexthop_str str(std::string_view text) noexcept { return {text.data(), text.size()}; }
inline std::string_view view(nexthop_str text) noexcept {
  return text.ptr ? std::string_view(text.ptr, text.len) : std::string_view();
}

inline nexthop_options options() noexcept {
  nexthop_options made{};
  made.struct_size = sizeof made;
  return made;
}
inline nexthop_document document(std::string_view text, uint8_t kind = NEXTHOP_DOCUMENT_TEXT,
                                 uint8_t dialect = NEXTHOP_DIALECT_AUTO, std::string_view name = {}) noexcept {
  nexthop_document made{};
  made.struct_size = sizeof made;
  made.kind = kind;
  made.dialect = dialect;
  made.name = str(name);
  made.text = str(text);
  return made;
}
// Zero target: match the route tables. The text in a head must live until the request's first choose.
inline nexthop_head head(uint32_t target = 0, std::string_view path = {}) noexcept {
  nexthop_head made{};
  made.struct_size = sizeof made;
  made.target = target;
  made.want = 1;
  made.priority = -1;
  made.path = str(path);
  return made;
}
inline nexthop_outcome outcome(uint16_t status = 0, uint8_t failure = 0) noexcept {
  nexthop_outcome made{};
  made.struct_size = sizeof made;
  made.grpc_status = -1;
  made.status = status;
  made.failure = failure;
  return made;
}
inline nexthop_host_op host_op(uint8_t op, std::string_view address, uint32_t weight = 1) noexcept {
  nexthop_host_op made{};
  made.struct_size = sizeof made;
  made.op = op;
  made.address = str(address);
  made.weight = weight;
  return made;
}

// Appends a value to a header block over a wanted set.
inline void pack(std::string& block, uint16_t index, std::string_view value) {
  const size_t at = block.size();
  block.resize(at + 8 + value.size());
  block.resize(nexthop_pack(block.data(), block.size(), at, index, str(value)));
}

// A table's name of a value, "" for unknown ones.
inline std::string_view name(uint32_t table, uint32_t value) noexcept { return nexthop_name(table, value); }

struct HostInfo {
  uint32_t slot = 0, version = 0, cluster = 0, weight = 0;
  bool secure = false;
  uint16_t port = 0, priority = 0;
  uint64_t connect_timeout = 0;
  std::string address, hostname, cluster_name, region, zone, sub_zone, metadata;
};

struct LocalReply {
  uint16_t status = 0;
  uint32_t flags = 0;
  std::string details, body;
  std::vector<std::pair<std::string, std::string>> headers;
};

struct RequestFacts {
  uint64_t timeout = 0, idle_timeout = 0;
  std::string cluster, route;
};

// A check to perform.
struct Check {
  uint64_t id = 0, timeout = 0, body_limit = 0;
  uint8_t protocol = 0;
  bool http2 = false, may_reuse = false, secure = false;
  uint16_t want = 0;
  uint32_t host = 0, host_version = 0;
  std::string method, path, authority, send, address, cluster, name, extension;
  std::vector<std::pair<std::string, std::string>> headers;
};

// What came of a check: a result, or (judged by the library) an answer, a failure, the bytes of a TCP connection.
struct CheckAnswer {
  uint32_t result = NEXTHOP_CHECK_JUDGE;
  uint16_t status = 0;
  uint8_t failure = 0;
  int8_t grpc_status = -1;
  std::string headers;  // a block over the check's set `want`
  std::string body;
};

// A header to set, or (no value) to remove.
using ExtraHeader = std::pair<std::string, std::optional<std::string>>;

namespace detail {

// Calls `ask(buf, cap, &len)` until the buffer is large enough.
template <class Ask>
nexthop_status grow(std::string& buffer, Ask ask) {
  buffer.resize(512);
  size_t len = 0;
  nexthop_status status;
  while ((status = ask(buffer.data(), buffer.size(), &len)) == NEXTHOP_SHORT) buffer.resize(len);
  if (status == NEXTHOP_OK) buffer.resize(len);
  return status;
}

inline std::vector<std::pair<std::string, std::string>> pairs(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> all;
  for (size_t at = 0; at < text.size();) {
    const size_t name_end = text.find('\0', at), value_end = text.find('\0', name_end + 1);
    all.emplace_back(text.substr(at, name_end - at), text.substr(name_end + 1, value_end - name_end - 1));
    at = value_end + 1;
  }
  return all;
}

inline Result<std::vector<ExtraHeader>> extra_headers(uint64_t id) {
  std::string text;
  auto status = grow(text, [&](char* b, size_t c, size_t* l) { return nexthop_extra_headers(id, b, c, l); });
  if (status != NEXTHOP_OK) return Error::last(status);
  std::vector<ExtraHeader> headers;
  for (auto& [name, value] : pairs(text)) {
    std::optional<std::string> set;
    if (value != "\1") set = std::move(value);
    headers.emplace_back(std::move(name), std::move(set));
  }
  return headers;
}

inline Result<HostInfo> host(nexthop_engine engine, uint32_t slot, uint32_t version) {
  nexthop_host_info raw{};
  raw.struct_size = sizeof raw;
  std::string text;
  auto status = grow(
      text, [&](char* b, size_t c, size_t* l) { return nexthop_host(engine, slot, version, &raw, b, c, l); });
  if (status != NEXTHOP_OK) return Error::last(status);
  HostInfo info;
  info.slot = slot, info.version = raw.version, info.cluster = raw.cluster, info.weight = raw.weight;
  info.secure = (raw.bits & NEXTHOP_HOST_SECURE) != 0;
  info.port = raw.port, info.priority = raw.priority, info.connect_timeout = raw.connect_timeout;
  info.address = view(raw.address), info.hostname = view(raw.hostname), info.cluster_name = view(raw.cluster_name);
  info.region = view(raw.region), info.zone = view(raw.zone), info.sub_zone = view(raw.sub_zone);
  info.metadata = view(raw.metadata);
  return info;
}

}  // namespace detail

// One upstream try. What is dropped unreported is cancelled.
class Attempt {
 public:
  Attempt(nexthop_engine engine, const nexthop_decision& decision) noexcept : engine_(engine), decision_(decision) {}
  Attempt(Attempt&& other) noexcept
      : engine_(other.engine_), decision_(std::exchange(other.decision_, {})), ended_(std::exchange(other.ended_, true)) {}
  Attempt& operator=(Attempt&& other) noexcept {
    if (this != &other) {
      cancel();
      engine_ = other.engine_;
      decision_ = std::exchange(other.decision_, {});
      ended_ = std::exchange(other.ended_, true);
    }
    return *this;
  }
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;
  ~Attempt() { cancel(); }

  nexthop_attempt id() const noexcept { return decision_.attempt; }
  const nexthop_decision& decision() const noexcept { return decision_; }
  uint32_t number() const noexcept { return decision_.number; }
  Result<HostInfo> host() const { return detail::host(engine_, decision_.host, decision_.host_version); }
  Result<std::vector<ExtraHeader>> extra_headers() const { return detail::extra_headers(decision_.attempt.id); }

  nexthop_verdict headers(const nexthop_outcome& outcome, uint64_t now = NEXTHOP_NOW) noexcept {
    return seen(nexthop_headers(id(), &outcome, now), true);
  }
  nexthop_verdict complete(const nexthop_outcome& outcome, uint64_t now = NEXTHOP_NOW) noexcept {
    return seen(nexthop_complete(id(), &outcome, now), false);
  }
  nexthop_verdict complete(uint32_t status, uint64_t now = NEXTHOP_NOW) noexcept {
    return seen(nexthop_complete_status(id(), status, now), false);
  }
  nexthop_verdict fail(uint32_t failure, uint64_t now = NEXTHOP_NOW) noexcept {
    return seen(nexthop_fail(id(), failure, now), false);
  }
  nexthop_verdict end(uint64_t now = NEXTHOP_NOW) noexcept { return seen(nexthop_end(id(), nullptr, now), false); }
  nexthop_verdict end(const nexthop_outcome& outcome, uint64_t now = NEXTHOP_NOW) noexcept {
    return seen(nexthop_end(id(), &outcome, now), false);
  }
  nexthop_status note(uint32_t what, uint64_t now = NEXTHOP_NOW) noexcept {
    return nexthop_note(id().id, what, now, nullptr);
  }
  // Whether it can be handed over to whatever reads the response's body.
  nexthop_status answered() const noexcept { return nexthop_answered(id()); }
  // Nothing happens once it has ended.
  nexthop_verdict cancel(uint64_t now = NEXTHOP_NOW) noexcept {
    if (ended_ || id().id == 0) return {};
    ended_ = true;
    return nexthop_cancel(id(), now);
  }

 private:
  nexthop_verdict seen(nexthop_verdict verdict, bool streams) noexcept {
    if (verdict.code == NEXTHOP_OK && !(streams && verdict.action == NEXTHOP_FORWARD)) ended_ = true;
    return verdict;
  }

  nexthop_engine engine_;
  nexthop_decision decision_;
  bool ended_ = false;
};

// What choosing answered; `attempt` is there with NEXTHOP_GO.
struct Choice {
  nexthop_decision decision;
  std::optional<Attempt> attempt;

  bool go() const noexcept { return decision.kind == NEXTHOP_GO; }
  bool wait() const noexcept { return decision.kind == NEXTHOP_WAIT; }
  bool refused() const noexcept { return !go() && !wait(); }
};

// One downstream request. Dropping it finishes it: its open attempts are cancelled.
class Request {
 public:
  Request(nexthop_engine engine, const nexthop_head& head) noexcept : engine_(engine), head_(head) {}
  Request(Request&& other) noexcept : engine_(other.engine_), head_(other.head_), id_(std::exchange(other.id_, {})) {}
  Request& operator=(Request&& other) noexcept {
    if (this != &other) {
      finish();
      engine_ = other.engine_;
      head_ = other.head_;
      id_ = std::exchange(other.id_, {});
    }
    return *this;
  }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  ~Request() { finish(); }

  nexthop_request id() const noexcept { return id_; }

  // The first one makes the request (nexthop_begin), each later one asks again (nexthop_choose).
  Result<Choice> choose(uint64_t now = NEXTHOP_NOW) {
    nexthop_decision decision{};
    decision.struct_size = sizeof decision;
    const nexthop_status status =
        id_.id == 0 ? nexthop_begin(engine_, &head_, now, &decision) : nexthop_choose(id_, now, &decision);
    if (status != NEXTHOP_OK) return Error::last(status);
    id_ = decision.request;
    Choice choice{decision, std::nullopt};
    if (choice.go()) choice.attempt.emplace(engine_, decision);
    return choice;
  }
  // Blocks until choosing again makes sense.
  nexthop_status wait(uint64_t max_ns) const noexcept { return nexthop_wait(id_, max_ns); }
  nexthop_verdict finish(uint32_t reason = NEXTHOP_FINISH_CLIENT_GONE, uint64_t now = NEXTHOP_NOW) noexcept {
    if (id_.id == 0) return {};
    return nexthop_finish(id_, reason, now);
  }
  nexthop_status note(uint32_t what, uint64_t now = NEXTHOP_NOW) noexcept {
    return nexthop_note(id_.id, what, now, nullptr);
  }
  // Headers for the answer to the client.
  Result<std::vector<ExtraHeader>> extra_headers() const { return detail::extra_headers(id_.id); }

  // NEXTHOP_EMPTY: there is none.
  Result<LocalReply> reply() const {
    nexthop_local_reply raw{};
    raw.struct_size = sizeof raw;
    std::string text;
    auto status =
        detail::grow(text, [&](char* b, size_t c, size_t* l) { return nexthop_reply(id_, &raw, b, c, l); });
    if (status != NEXTHOP_OK) return Error::last(status);
    LocalReply reply;
    reply.status = raw.status, reply.flags = raw.flags;
    reply.details = view(raw.details), reply.body = view(raw.body);
    const std::string_view pairs = view(raw.headers);
    for (size_t at = 0; at < pairs.size();) {
      const size_t name_end = pairs.find('\0', at), value_end = pairs.find('\0', name_end + 1);
      reply.headers.emplace_back(pairs.substr(at, name_end - at),
                                 pairs.substr(name_end + 1, value_end - name_end - 1));
      at = value_end + 1;
    }
    return reply;
  }
  Result<RequestFacts> info() const {
    nexthop_request_facts raw{};
    raw.struct_size = sizeof raw;
    std::string text;
    auto status =
        detail::grow(text, [&](char* b, size_t c, size_t* l) { return nexthop_request_info(id_, &raw, b, c, l); });
    if (status != NEXTHOP_OK) return Error::last(status);
    return RequestFacts{raw.timeout, raw.idle_timeout, std::string(view(raw.cluster)), std::string(view(raw.route))};
  }

 private:
  nexthop_engine engine_;
  nexthop_head head_;
  nexthop_request id_{0};
};

// Clusters, routes and what was learned about them. Dropping it closes it.
class Engine {
 public:
  static Result<Engine> make(const std::vector<nexthop_document>& documents,
                             const nexthop_options& options = nexthop::options()) {
    if (nexthop_abi_version() != NEXTHOP_ABI)
      return Error{NEXTHOP_INVALID, "the library has interface " + std::to_string(nexthop_abi_version()) +
                                        ", this program was built for " + std::to_string(NEXTHOP_ABI)};
    nexthop_engine engine{0};
    const nexthop_status status = nexthop_engine_new(&options, documents.data(), documents.size(), &engine);
    if (status != NEXTHOP_OK) return Error::last(status);
    return Engine(engine);
  }
  static Result<Engine> from_file(std::string_view path, const nexthop_options& options = nexthop::options()) {
    return make({document(path, NEXTHOP_DOCUMENT_PATH)}, options);
  }
  static Result<Engine> from_text(std::string_view text, const nexthop_options& options = nexthop::options()) {
    return make({document(text)}, options);
  }
  Engine(Engine&& other) noexcept : id_(std::exchange(other.id_, {})), open_(std::exchange(other.open_, false)) {}
  Engine& operator=(Engine&& other) noexcept {
    if (this != &other) {
      close();
      id_ = std::exchange(other.id_, {});
      open_ = std::exchange(other.open_, false);
    }
    return *this;
  }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine() { close(); }

  nexthop_engine id() const noexcept { return id_; }
  // What is asked of it afterwards, or of its requests and attempts, is NEXTHOP_CLOSED.
  void close() noexcept {
    if (std::exchange(open_, false)) nexthop_engine_free(id_);
  }

  Request request(const nexthop_head& head) const noexcept { return Request(id_, head); }
  Result<Choice> pick(uint32_t target, uint32_t number, std::optional<std::string_view> key = std::nullopt,
                      uint64_t now = NEXTHOP_NOW) const {
    nexthop_decision decision{};
    decision.struct_size = sizeof decision;
    const nexthop_str bytes = key ? nexthop_str{key->data() ? key->data() : "", key->size()} : nexthop_str{};
    const nexthop_status status = nexthop_pick(id_, target, number, bytes, now, &decision);
    if (status != NEXTHOP_OK) return Error::last(status);
    Choice choice{decision, std::nullopt};
    if (choice.go()) choice.attempt.emplace(id_, decision);
    return choice;
  }
  Result<uint32_t> resolve(std::string_view name) const {
    uint32_t target = 0;
    return answer(nexthop_resolve(id_, str(name), &target), target);
  }
  Result<uint64_t> update(const std::vector<nexthop_document>& documents) const {
    uint64_t epoch = 0;
    return answer(nexthop_update(id_, documents.data(), documents.size(), &epoch), epoch);
  }
  // Whether anything was taken over.
  Result<bool> reload() const {
    uint32_t swapped = 0;
    const nexthop_status status = nexthop_reload(id_, &swapped, nullptr);
    if (status != NEXTHOP_OK) return Error::last(status);
    return swapped != 0;
  }
  Result<uint64_t> apply(std::string_view cluster, const std::vector<nexthop_host_op>& changes) const {
    uint64_t epoch = 0;
    return answer(nexthop_apply(id_, str(cluster), changes.data(), changes.size(), &epoch), epoch);
  }
  Result<HostInfo> host(uint32_t slot, uint32_t version = 0) const { return detail::host(id_, slot, version); }
  Result<std::string> text(uint32_t what, std::string_view argument = {}) const {
    std::string text;
    auto status = detail::grow(text, [&](char* b, size_t c, size_t* l) {
      return nexthop_text(id_, what, str(argument), b, c, l);
    });
    return answer(status, text);
  }
  // NEXTHOP_EMPTY: there is none.
  Result<std::string> poll_event() const {
    std::string text;
    auto status =
        detail::grow(text, [&](char* b, size_t c, size_t* l) { return nexthop_poll_event(id_, b, c, l); });
    return answer(status, text);
  }
  // One round of an event log, for a thread or timer of yours: runs due maintenance, then hands each event to the sink, a
  // callable over std::string_view, as a line of JSON without an end. Gives how many there were. What the sink throws
  // goes on to the caller; its event is lost. Events are polled here alone.
  template <class Sink>
  Result<size_t> log_events(Sink&& sink) const {
    auto bits = maintain();
    if (!bits) return bits.error();
    size_t lines = 0;
    for (;; lines++) {
      auto line = poll_event();
      if (!line && line.error().status != NEXTHOP_EMPTY) return line.error();
      if (!line) return lines;
      sink(std::string_view(*line));
    }
  }
  Result<std::vector<nexthop_ready>> poll_ready() const {
    std::vector<nexthop_ready> all;
    nexthop_ready some[32];
    size_t n = 0;
    do {
      const nexthop_status status = nexthop_poll_ready(id_, some, 32, &n);
      if (status != NEXTHOP_OK) return Error::last(status);
      all.insert(all.end(), some, some + n);
    } while (n == 32);
    return all;
  }
  Result<nexthop_engine_facts> info() const {
    nexthop_engine_facts facts{};
    facts.struct_size = sizeof facts;
    return answer(nexthop_engine_info(id_, &facts), facts);
  }
  Result<uint32_t> maintain(uint64_t now = NEXTHOP_NOW) const {
    uint32_t bits = 0;
    return answer(nexthop_maintain(id_, now, &bits), bits);
  }
  uint64_t poll_deadline(uint64_t now = NEXTHOP_NOW) const noexcept { return nexthop_poll_deadline(id_, now); }
  // NEXTHOP_EMPTY: none is due. The first call begins active checking.
  Result<Check> poll_check(uint64_t now = NEXTHOP_NOW) const {
    nexthop_check raw{};
    raw.struct_size = sizeof raw;
    std::string text;
    auto status = detail::grow(
        text, [&](char* b, size_t c, size_t* l) { return nexthop_poll_check(id_, now, &raw, b, c, l); });
    if (status != NEXTHOP_OK) return Error::last(status);
    Check check;
    check.id = raw.id, check.timeout = raw.timeout, check.body_limit = raw.body_limit, check.protocol = raw.protocol;
    check.http2 = (raw.bits & NEXTHOP_CHECK_BIT_HTTP2) != 0, check.secure = (raw.bits & NEXTHOP_CHECK_BIT_SECURE) != 0;
    check.may_reuse = (raw.bits & NEXTHOP_CHECK_BIT_REUSE) != 0;
    check.want = raw.want, check.host = raw.host, check.host_version = raw.host_version;
    check.method = view(raw.method), check.path = view(raw.path), check.authority = view(raw.authority);
    check.send = view(raw.send), check.address = view(raw.address), check.cluster = view(raw.cluster);
    check.name = view(raw.name), check.extension = view(raw.extension);
    check.headers = detail::pairs(view(raw.headers));
    return check;
  }
  // NEXTHOP_EMPTY: it is still out. NEXTHOP_ENDED: it is over; nothing has changed.
  nexthop_status check_result(uint64_t check, const CheckAnswer& answer, uint64_t now = NEXTHOP_NOW) const noexcept {
    nexthop_outcome told = outcome(answer.status, answer.failure);
    told.grpc_status = answer.grpc_status;
    told.headers = str(answer.headers);
    return nexthop_check_result(id_, check, answer.result, &told, str(answer.body), now);
  }
  // One round: `perform(const Check&)` gives a CheckAnswer for each check that is due, one after the other. What does not
  // decide a check counts as a matter of the network. Nanoseconds until the next round, a second at most. Call it in a
  // loop of a thread, or of an event loop whose `perform` does not block for long.
  template <class Perform>
  Result<uint64_t> run_checks(Perform&& perform, uint64_t now = NEXTHOP_NOW) const {
    for (;;) {
      auto check = poll_check(now);
      if (!check && check.error().status == NEXTHOP_EMPTY) break;
      if (!check) return check.error();
      CheckAnswer answer = perform(static_cast<const Check&>(*check));
      nexthop_status status = check_result(check->id, answer, now);
      if (status == NEXTHOP_EMPTY && answer.result != NEXTHOP_CHECK_PASSIVE) {
        answer = CheckAnswer{};
        answer.result = NEXTHOP_CHECK_NETWORK;
        status = check_result(check->id, answer, now);
      }
      // Over meanwhile: its time has run out, or its host has left.
      if (status != NEXTHOP_OK && status != NEXTHOP_ENDED && status != NEXTHOP_EMPTY) return Error::last(status);
    }
    constexpr uint64_t look = 1000000000;
    const uint64_t next = checks_deadline(now);
    return next < look ? next : look;
  }
  uint64_t checks_deadline(uint64_t now = NEXTHOP_NOW) const noexcept { return nexthop_checks_deadline(id_, now); }
  nexthop_status advance(uint64_t ns) const noexcept { return nexthop_advance(id_, ns); }
  uint64_t now() const noexcept { return nexthop_now(id_); }

 private:
  explicit Engine(nexthop_engine id) noexcept : id_(id), open_(true) {}
  template <class T>
  static Result<T> answer(nexthop_status status, T& value) {
    if (status != NEXTHOP_OK) return Error::last(status);
    return Result<T>(std::move(value));
  }

  nexthop_engine id_;
  bool open_;
};

}  // namespace nexthop

#endif
