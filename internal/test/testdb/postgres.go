package testdb

import "strconv"

// postgresArguments are PostgreSQL's. Sockets stay off: nobody needs them.
func (s *Server) postgresArguments() []string {
	settings := []string{
		"listen_addresses=127.0.0.1",
		"unix_socket_directories=",
		// In the data folder, which is removed after a kill; POSIX segments would stay.
		"dynamic_shared_memory_type=mmap",
		"max_connections=200",
		"max_prepared_transactions=20",
		"timezone=UTC",
		"log_timezone=UTC",
		"shared_buffers=64MB",
		"max_wal_size=256MB",
		"log_min_messages=warning",
		// Statistics, and with them plans, change when a test says so.
		"autovacuum=off",
		// A test that holds many locks in many schemas should not run out.
		"max_locks_per_transaction=256",
	}
	arguments := []string{"-D", s.data, "-p", strconv.Itoa(s.Port)}
	for _, setting := range append(settings, s.options.settings...) {
		arguments = append(arguments, "-c", setting)
	}
	return arguments
}
