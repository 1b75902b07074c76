// Package nexthop makes Envoy's upstream decisions inside a Go program: which host, may I, how long, and, when it
// ended, what now.
//
// An [Engine] is made from documents (Envoy configuration, or the short form). A [Request] is one downstream
// request; its ChooseHost answers with an [Attempt] to send, or with a [*Refusal]. Each attempt is reported once, by
// Complete, or by OnHeaders and later End, or by Fail, and each report is answered by a [Verdict]: forward, retry,
// discard. Retrying is calling ChooseHost again; back-off and queueing happen inside it.
//
//	call := mesh.Request(nexthop.Head{Cluster: "checkout", Path: "/pay"})
//	defer call.Close()
//	for {
//		attempt, err := call.ChooseHost(ctx)
//		if err != nil {
//			return err
//		}
//		reply, err := client.Get(attempt.URL(""))
//		if err != nil {
//			if v, _ := attempt.Fail(err); v.Retry() {
//				continue
//			}
//			return err
//		}
//		...
//	}
//
// [Transport] is that loop ready-made for net/http; [Request.Run] is it for any client.
//
// Every method is safe for use by several goroutines. Durations of 0 mean: no limit.
package nexthop
