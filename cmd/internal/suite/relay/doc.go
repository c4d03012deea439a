// Package relay tests relays, sinks that mirror, and the server, on every database.
package relay
