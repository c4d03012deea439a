package feedtype

import (
	"time"
)

// LeaseStatus is the state of a lease, on the database's clock.
type LeaseStatus struct {
	Name string `json:"name"`
	// State is LeaseHeld, LeaseExpired (the holder has not renewed it, and any process may acquire it) or LeaseFree.
	State string `json:"state"`
	// Owner is the owner of the current or last claim, host/pid/random. It is empty after a release.
	Owner string `json:"owner"`
	Epoch int64  `json:"epoch"` // of the current or last claim
	// Since is when the current or last claim began.
	Since time.Time `json:"since"`
	// ExpiresInSeconds is the time left in seconds. It is negative if the claim has expired, and 0 if the lease is
	// free.
	ExpiresInSeconds float64 `json:"expires_in_seconds"`
	Renewals         int64   `json:"renewals"` // of that claim
}

// The states of a lease.
const (
	LeaseHeld    = "held"
	LeaseExpired = "expired"
	LeaseFree    = "free"
)

// RelayLeases is the prefix of the names of the leases of relays.
const RelayLeases = "relay:"

// RelayLease returns the name of the lease under which one process runs a relay that has one shard.
func RelayLease(relay, feed string) string { return RelayLeases + feed + ":" + relay }
