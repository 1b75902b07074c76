package nexthop

// #include "nexthop.h"
import "C"

import (
	"encoding/json"
	"runtime"
	"unsafe"
)

// Health of a host as endpoint discovery tells it.
type Health uint8

// Health states.
const (
	HealthUnknown   Health = 0
	HealthHealthy   Health = 1
	HealthUnhealthy Health = 2
	HealthDraining  Health = 3
	HealthTimeout   Health = 4
	HealthDegraded  Health = 5
)

// HostSpec is a host from code.
type HostSpec struct {
	Address               string // "ip:port", "[v6]:port" or "name:port"
	Weight                uint32 // 0: 1
	Priority              int    // 0 to 128
	Health                Health
	Hostname              string
	Region, Zone, SubZone string
	Metadata              map[string]any // of envoy.lb
}

// HostOp is what a [HostChange] does.
type HostOp uint8

// Operations.
const (
	HostAdd    HostOp = 1 // or replace the host of that address
	HostRemove HostOp = 2
	HostModify HostOp = 3 // the fields named only
)

// Fields that HostModify changes.
type Fields uint32

// Fields of a host.
const (
	FieldWeight   Fields = 1
	FieldPriority Fields = 2
	FieldHealth   Fields = 4
	FieldLocality Fields = 8
	FieldMetadata Fields = 16
	FieldHostname Fields = 32
)

// HostChange is one change of a cluster's hosts.
type HostChange struct {
	Op     HostOp
	Fields Fields
	Host   HostSpec
}

// SetHosts replaces all hosts of a cluster.
func (e *Engine) SetHosts(cluster string, hosts []HostSpec) (epoch uint64, err error) {
	if len(hosts) == 0 {
		// A batch of no changes changes nothing; an assignment without endpoints takes every host away.
		assignment, err := json.Marshal(map[string]string{"cluster_name": cluster})
		if err != nil {
			return 0, err
		}
		return e.ApplyEndpoints(cluster, string(assignment))
	}
	changes := make([]HostChange, len(hosts))
	for i, host := range hosts {
		changes[i] = HostChange{Op: C.NEXTHOP_HOST_SET, Host: host}
	}
	return e.Apply(cluster, changes...)
}

// Apply changes hosts of a cluster, whole or not at all.
func (e *Engine) Apply(cluster string, changes ...HostChange) (epoch uint64, err error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	ops := make([]C.nexthop_host_op, len(changes))
	for i, change := range changes {
		host := change.Host
		if host.Priority < 0 || host.Priority > 128 {
			return 0, &UsageError{ErrInvalid, "the priority of " + host.Address + " is not 0 to 128"}
		}
		metadata := ""
		if len(host.Metadata) > 0 {
			text, err := json.Marshal(host.Metadata)
			if err != nil {
				return 0, &UsageError{ErrInvalid, "the metadata of " + host.Address + " is no JSON object: " + err.Error()}
			}
			metadata = string(text)
		}
		ops[i] = C.nexthop_host_op{
			struct_size: C.sizeof_nexthop_host_op,
			weight:      C.uint32_t(host.Weight),
			bits:        C.uint32_t(change.Fields),
			priority:    C.uint16_t(host.Priority),
			health:      C.uint8_t(host.Health),
			op:          C.uint8_t(change.Op),
			address:     cString(&pin, host.Address),
			hostname:    cString(&pin, host.Hostname),
			region:      cString(&pin, host.Region),
			zone:        cString(&pin, host.Zone),
			sub_zone:    cString(&pin, host.SubZone),
			metadata:    cString(&pin, metadata),
		}
	}
	return e.apply(&pin, cluster, ops)
}

// ApplyEndpoints replaces a cluster's endpoints by a ClusterLoadAssignment, as endpoint discovery does, or by an
// instance list of Nacos, Spring, Consul, Eureka or Kubernetes; JSON or YAML. The cluster_name of an assignment must be
// the cluster's name, or that of its EDS service.
func (e *Engine) ApplyEndpoints(cluster, assignment string) (epoch uint64, err error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	return e.apply(&pin, cluster, []C.nexthop_host_op{{
		struct_size: C.sizeof_nexthop_host_op,
		op:          C.NEXTHOP_HOST_ENDPOINTS,
		metadata:    cString(&pin, assignment),
	}})
}

func (e *Engine) apply(pin *runtime.Pinner, cluster string, ops []C.nexthop_host_op) (uint64, error) {
	if !e.made() {
		return 0, errNoEngine
	}
	if len(ops) > 0 {
		pin.Pin(&ops[0])
	}
	name := cString(pin, cluster)
	var epoch C.uint64_t
	err := e.checked(func() C.nexthop_status {
		return C.nexthop_apply(e.id, name, unsafe.SliceData(ops), C.size_t(len(ops)), &epoch)
	})
	e.wakeReady()
	return uint64(epoch), err
}
