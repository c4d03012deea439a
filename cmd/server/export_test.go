package server

import "time"

// WithReadyTimeout is c with another bound of what /readyz asks the database.
func (c Config) WithReadyTimeout(d time.Duration) Config {
	c.readyTimeout = d
	return c
}
