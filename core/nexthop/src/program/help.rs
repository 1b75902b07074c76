//! What the program says about itself.

pub(super) const SHORT: &str =
    "usage: nexthop COMMAND [--help] ...   (choose, explain, effective, check, lint, translate)";

pub(super) const LONG: &str = "nexthop: Envoy's upstream decisions, from a shell.

usage: nexthop COMMAND ...

  choose     where attempt N of a request goes: one decision
  explain    why: the route, every host and what speaks against it, limits, what a failure would do
  effective  every number in force for a cluster or route, and the line it comes from
  check      are these documents understood, and which of their fields do nothing
  lint       what is legal and probably not meant
  translate  Istio's objects and instance lists in Envoy's form

`nexthop COMMAND --help` or `nexthop help COMMAND` tells more. A file `-` is standard input. Documents are Envoy's YAML or JSON, the short form, Istio's objects, and instance
lists of Nacos, Spring, Consul, Eureka and Kubernetes; several files are read together. Nothing is sent anywhere.
Colours are used on a terminal only, and never where NO_COLOR is set.";

pub(super) const CHOOSE: &str = "usage: nexthop choose --config FILE... --cluster NAME [--attempt N] [--tried A,B] [--key K]
                      [--header 'name: value']... [--metadata JSON] [--json]

Asks once where an attempt goes, and prints the host's address. A script that counts its attempts needs no more:
  HOST=$(nexthop choose --config mesh.yaml --cluster chain --attempt 2) && curl \"http://$HOST/\"

  --config FILE...  documents, read together
  --cluster NAME    the cluster (a composite sends attempt N to its N-th sub-cluster)
  --attempt N       number of the attempt, from 1 (default 1)
  --tried A,B       addresses that attempts before went to
  --key K           what a hash policy hashes, in place of headers
  --header 'name: value', --metadata JSON   what hash policies, filters and subsets look at, as for explain
  --json            the whole decision as JSON: kind (go, wait, refused), address, try_timeout, refusal, flags, ...

exit code: 0 a host is printed; 1 wait or refused, also where there is no such cluster; 2 a bad document or argument";

pub(super) const EXPLAIN: &str = "usage: nexthop explain --config FILE... [--cluster NAME | --route NAME] [--authority A] [--path P] [--method M]
                       [--header 'name: value']... [--attempt N] [--tried A,B] [--key K] [--metadata JSON] [--json]

Tells what would be decided for a request and why. Nothing is decided or counted. Without --cluster and --route the
route tables are matched.

  --authority A, --path P, --method M   of the request (method GET, path / unless given)
  --header 'name: value'                one of its headers; may be repeated
  --metadata JSON                       what the caller knows of it: subset criteria, context of filters
  --attempt N, --tried A,B, --key K     as for choose
  --json                                the same as JSON (docs/schemas/explain.json)

exit code: 0 an attempt would be made; 1 it would be refused, also where there is no such name; 2 a bad document or argument";

pub(super) const EFFECTIVE: &str = "usage: nexthop effective [--json] NAME FILE...

Prints every number in force for a cluster (NAME) or route (route:NAME, route:VHOST/NAME), and where it comes from: the
document's line, a runtime value, or whose default it is.

exit code: 0 printed; 1 there is no such name; 2 a bad document or argument";

pub(super) const CHECK: &str = "usage: nexthop check [--all] FILE...

Loads the documents together and prints the fields that were read and do nothing; with --all every field: used, absent
(and whose default acts), not used here and why.

exit code: 0 they are understood; 1 they are refused; 2 a bad argument";

pub(super) const LINT: &str = "usage: nexthop lint [--format human|json|sarif] [--fail-on note|warning|error|never] FILE...

Tells what in the documents is legal and probably not meant: a code, its place, what will happen and what to do
(docs/lints.md lists the codes).

exit code: 0 nothing as bad as --fail-on (warning unless given); 1 something is; 2 a document is refused";

pub(super) const TRANSLATE: &str = "usage: nexthop translate FILE...

Prints Istio's DestinationRules, VirtualServices, ServiceEntries and WorkloadEntries, and instance lists, in Envoy's
form: YAML documents that `nexthop check` and Envoy read.

exit code: 0 printed; 1 they are refused; 2 a bad argument";
