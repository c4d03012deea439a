package server

import "time"

// WithReadyTimeout returns c with another timeout for the queries of /readyz.
func (c Config) WithReadyTimeout(d time.Duration) Config {
	c.readyTimeout = d
	return c
}
