// The full loop in C++: owners end what is dropped, errors are values.
#include "nexthop.hpp"

#include <cstdio>

static const char document[] =
    "clusters:\n"
    "  checkout:\n"
    "    hosts: [10.0.0.1:80, 10.0.0.2:80, 10.0.0.3:80]\n"
    "    policy: round_robin\n"
    "    retry: {on: [5xx, connect-failure], times: 2, backoff: {base: 25ms, max: 250ms}}\n";

static int failed(const nexthop::Error& error) {
  std::fprintf(stderr, "%d: %s\n", error.status, error.message.c_str());
  return 1;
}

int main() {
  auto options = nexthop::options();
  options.clock = NEXTHOP_CLOCK_MANUAL;  // a program of yours leaves this out
  options.workers = 1;
  options.seed = 1;
  auto mesh = nexthop::Engine::from_text(document, options);
  if (!mesh) return failed(mesh.error());
  auto checkout = mesh->resolve("checkout");
  if (!checkout) return failed(checkout.error());

  auto call = mesh->request(nexthop::head(*checkout, "/pay"));
  for (;;) {
    auto choice = call.choose();
    if (!choice) return failed(choice.error());
    if (choice->wait()) {
      std::printf("wait for %s\n", nexthop::name(NEXTHOP_NAMES_WAIT, choice->decision.refusal).data());
      mesh->advance(choice->decision.wait);  // on a real clock: call.wait(choice->decision.wait)
      continue;
    }
    if (choice->refused()) {
      std::printf("answer: %u\n", choice->decision.status);
      return 0;
    }
    auto host = choice->attempt->host();
    if (!host) return failed(host.error());
    const unsigned status = host->address == "10.0.0.3:80" ? 200 : 503;  // stands for your client
    std::printf("GET /pay from %s: %u\n", host->address.c_str(), status);
    const auto verdict = choice->attempt->complete(status);
    if (verdict.code != NEXTHOP_OK) return failed(nexthop::Error::last(verdict.code));
    if (verdict.action != NEXTHOP_RETRY) {
      std::printf("answer: %u\n", verdict.status);
      return 0;
    }
  }
}
