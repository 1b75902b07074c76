//go:build race

package nexthop

const raceEnabled = true
