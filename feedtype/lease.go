package feedtype

import (
	"time"
)

// LeaseStatus is how a lease stands, on the database's clock.
type LeaseStatus struct {
	Name string `json:"name"`
	// State is LeaseHeld, LeaseExpired (its holder has not renewed, and anybody may
	// acquire it) or LeaseFree.
	State string `json:"state"`
	// Owner of the current or last claim, host/pid/random; empty once it is released.
	Owner string `json:"owner"`
	Epoch int64  `json:"epoch"` // of the current or last claim
	// Since is when that claim began.
	Since time.Time `json:"since"`
	// ExpiresInSeconds is the time left; negative when it is over, 0 when it is free.
	ExpiresInSeconds float64 `json:"expires_in_seconds"`
	Renewals         int64   `json:"renewals"` // in that claim
}

// The states of a lease.
const (
	LeaseHeld    = "held"
	LeaseExpired = "expired"
	LeaseFree    = "free"
)
