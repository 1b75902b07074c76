// The C++ owners: what is dropped is cancelled, what is moved from does nothing, errors are values.
#include "nexthop.hpp"
#include "nexthop.hpp"

#include <cstdio>
#include <cstdlib>
#include <type_traits>

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);    \
      std::exit(1);                                                           \
    }                                                                         \
  } while (0)

static_assert(!std::is_copy_constructible_v<nexthop::Engine> && std::is_nothrow_move_constructible_v<nexthop::Engine>);
static_assert(!std::is_copy_constructible_v<nexthop::Request> && std::is_nothrow_move_constructible_v<nexthop::Request>);
static_assert(!std::is_copy_constructible_v<nexthop::Attempt> && std::is_nothrow_move_constructible_v<nexthop::Attempt>);

static const char document[] =
    "clusters:\n"
    "  web: {hosts: [{address: 10.0.0.1:80, zone: b, metadata: {version: v2}}], "
    "retry: {on: [5xx], times: 1, backoff: {base: 25ms, max: 250ms}}}\n"
    "  narrow: {hosts: [10.0.1.1:80], limits: {connections: 1, pending: 1, requests: 10}}\n";

static nexthop_options manual() {
  auto options = nexthop::options();
  options.clock = NEXTHOP_CLOCK_MANUAL;
  options.workers = 1;
  return options;
}

static nexthop::Engine mesh() {
  auto made = nexthop::Engine::from_text(document, manual());
  CHECK(made);
  return std::move(made).value();
}

// Active checks, one round at a time.
static void checks() {
  auto options = nexthop::options();
  options.clock = NEXTHOP_CLOCK_MANUAL;
  auto made = nexthop::Engine::from_text(
      "clusters: [{name: web, load_assignment: {cluster_name: web, endpoints: [{lb_endpoints: [{endpoint: {address: "
      "{socket_address: {address: 10.0.0.1, port_value: 80}}}}]}]}, health_checks: [{timeout: 1s, interval: 5s, "
      "no_traffic_interval: 5s, unhealthy_threshold: 2, healthy_threshold: 2, http_health_check: {path: /h}}]}]",
      options);
  CHECK(made);
  nexthop::Engine engine = std::move(made).value();
  int performed = 0;
  const auto answer = [&](uint16_t status) {
    return engine.run_checks([&, status](const nexthop::Check& check) {
      CHECK(check.path == "/h" && check.authority == "web" && check.address == "10.0.0.1:80" && check.may_reuse);
      CHECK(check.headers.at(0).first == "user-agent" && check.protocol == NEXTHOP_CHECK_HTTP);
      performed += 1;
      nexthop::CheckAnswer answer;
      answer.status = status;
      return answer;
    });
  };
  CHECK(*answer(503) == 1000000000 && performed == 1);
  CHECK(engine.text(NEXTHOP_TEXT_HOSTS, "web")->find("/failed_active_hc") != std::string::npos);
  CHECK(engine.checks_deadline() == 5000000000);
  CHECK(answer(200) && performed == 1);  // nothing is due
  for (int round = 0; round < 2; round++) {
    CHECK(engine.advance(5000000000) == NEXTHOP_OK && answer(200));
  }
  CHECK(performed == 3 && engine.text(NEXTHOP_TEXT_HOSTS, "web")->find("/failed_active_hc") == std::string::npos);
  CHECK(engine.poll_check().error().status == NEXTHOP_EMPTY);
  CHECK(engine.check_result(99, {}) == NEXTHOP_INVALID);
  engine.close();
  CHECK(answer(200).error().status == NEXTHOP_CLOSED);
}

static uint64_t live(const nexthop::Engine& engine) { return engine.info().value().live_requests; }

int main() {
  auto bad = nexthop::Engine::from_text("clusters: 7");
  CHECK(!bad && bad.error().status == NEXTHOP_CONFIG && !bad.error().message.empty());
  const auto where = nexthop::Engine::from_text("clusters: {a: {hots: []}}").error();
  CHECK(where.file == "<text 1>" && where.line == 1 && where.column == 16 && where.path == "clusters.a.hots");
  CHECK(where.found == "hots" && where.nearest == "hosts" && !where.allowed.empty());
  CHECK(nexthop::Engine::from_file("/").error().status == NEXTHOP_IO);
  CHECK(nexthop::Engine::from_file("/").error().file == "/");
  CHECK(nexthop::Engine::make({}).error().status == NEXTHOP_INVALID);

  auto engine = mesh();
  const uint32_t web = engine.resolve("web").value(), narrow = engine.resolve("narrow").value();
  CHECK(engine.resolve("none").error().status == NEXTHOP_NOT_FOUND);
  CHECK(engine.reload() && !engine.reload().value());

  {  // dropped: cancelled
    auto choice = engine.pick(web, 1);
    CHECK(choice && choice->go() && choice->attempt->number() == 1);
    auto host = choice->attempt->host();
    CHECK(host && host->address == "10.0.0.1:80" && host->zone == "b" && host->metadata.find("v2") != std::string::npos);
    CHECK(live(engine) == 1);
  }
  CHECK(live(engine) == 0);

  {  // moved: still one attempt
    auto choice = engine.pick(web, 1, "key");
    nexthop::Attempt attempt = std::move(*choice->attempt), other = std::move(attempt);
    attempt.cancel();
    CHECK(live(engine) == 1);
    CHECK(other.complete(200u).code == NEXTHOP_OK);
    CHECK(other.complete(200u).code == NEXTHOP_ENDED);
    CHECK(live(engine) == 0);
  }

  {  // assigned over a reported attempt, and over an open one: the newest is the owner's, and cancelled with it
    auto first = engine.pick(web, 1), second = engine.pick(web, 1), third = engine.pick(web, 1);
    nexthop::Attempt attempt = std::move(*first->attempt);
    CHECK(attempt.complete(200u).code == NEXTHOP_OK && live(engine) == 2);
    attempt = std::move(*second->attempt);
    CHECK(live(engine) == 2);
    attempt = std::move(*third->attempt);
    CHECK(live(engine) == 1);
    CHECK(attempt.answered() == NEXTHOP_STATE);
    CHECK(attempt.headers(nexthop::outcome(200)).action == NEXTHOP_FORWARD && attempt.answered() == NEXTHOP_OK);
  }
  CHECK(live(engine) == 0);

  {  // a retry, back-off, streaming
    auto call = engine.request(nexthop::head(web, "/pay"));
    auto first = call.choose();
    CHECK(first && first->go());
    auto verdict = first->attempt->complete(nexthop::outcome(503));
    CHECK(verdict.action == NEXTHOP_RETRY);
    CHECK(call.info().value().cluster == "web");
    if (verdict.after_ms) {
      auto waits = call.choose();
      CHECK(waits && waits->wait() && !waits->attempt);
      CHECK(engine.advance(waits->decision.wait) == NEXTHOP_OK);
    }
    auto second = call.choose();
    CHECK(second && second->go() && second->attempt->number() == 2);
    CHECK(second->attempt->headers(nexthop::outcome(200)).action == NEXTHOP_FORWARD);
    CHECK(live(engine) == 1);
    CHECK(second->attempt->end().code == NEXTHOP_OK);
  }
  CHECK(live(engine) == 0);

  {  // refused, with its reply
    auto one = engine.request(nexthop::head(narrow)), two = engine.request(nexthop::head(narrow)),
         three = engine.request(nexthop::head(narrow));
    auto held = one.choose();
    CHECK(held->go() && two.choose()->wait());
    auto refused = three.choose();
    CHECK(refused->refused() && refused->decision.refusal == NEXTHOP_REFUSED_OVERFLOW);
    auto reply = three.reply();
    CHECK(reply && reply->status == 503 && !reply->details.empty() && !reply->headers.empty());
    CHECK(held->attempt->complete(200u).bits & NEXTHOP_WAKE);
    auto ready = engine.poll_ready();
    CHECK(ready && ready->size() == 1 && (*ready)[0].request.id == two.id().id);
    CHECK(two.choose()->go());  // and dropped at once
  }
  CHECK(live(engine) == 0);

  CHECK(engine.apply("web", {nexthop::host_op(NEXTHOP_HOST_SET, "10.9.0.1:80", 2)}));
  CHECK(engine.pick(web, 1)->attempt->host()->weight == 2);
  CHECK(engine.update({nexthop::document(document)}).value() > 0);
  CHECK(engine.text(NEXTHOP_TEXT_STATS).value().front() == '{');
  CHECK(engine.text(4711).error().status == NEXTHOP_NOT_FOUND);
  std::string block;
  nexthop::pack(block, 3, "value");
  nexthop::pack(block, 4, "");
  CHECK(block.size() == 13 + 8);
  CHECK(nexthop::name(NEXTHOP_NAMES_WAIT, NEXTHOP_WAIT_QUEUE) == "queue");

  checks();
  {  // a round of an event log: an ejection, and its end in a process without traffic
    auto sick = nexthop::Engine::from_text(
        "clusters: {web: {hosts: [10.0.0.1:80], outlier: {consecutive_5xx: 1, eject: 30s, max_percent: 100}}}", manual());
    std::string log;
    auto sink = [&log](std::string_view line) { log.append(line).append("\n"); };
    CHECK(sick->log_events(sink).value() == 0);
    CHECK(sick->pick(sick->resolve("web").value(), 1)->attempt->complete(500u).code == NEXTHOP_OK);
    CHECK(sick->log_events(sink).value() == 1 && log.find("\"action\":\"EJECT\"") != std::string::npos);
    CHECK(sick->advance(41000000000u) == NEXTHOP_OK);
    CHECK(sick->log_events(sink).value() == 1 && log.find("\"action\":\"UNEJECT\"") != std::string::npos);
    CHECK(log.back() == '\n' && log.front() == '{');
    sick->close();
    CHECK(sick->log_events(sink).error().status == NEXTHOP_CLOSED);
  }

  auto moved = std::move(engine);
  CHECK(engine.id().id == 0 && moved.pick(web, 1)->go());
  CHECK(*moved.resolve("web") == web);
  moved.close();
  moved.close();
  CHECK(moved.resolve("web").error().status == NEXTHOP_CLOSED);
  CHECK(moved.pick(web, 1).error().status == NEXTHOP_CLOSED);
  std::puts("owners: ok");
}
