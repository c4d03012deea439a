package testdb

import "strconv"

// postgresArguments are PostgreSQL's arguments. Unix sockets are not needed.
func (s *Server) postgresArguments() []string {
	settings := []string{
		"listen_addresses=127.0.0.1",
		"unix_socket_directories=",
		// Shared memory in the data folder is removed after a kill; POSIX segments would remain.
		"dynamic_shared_memory_type=mmap",
		"max_connections=200",
		"max_prepared_transactions=20",
		"timezone=UTC",
		"log_timezone=UTC",
		"shared_buffers=64MB",
		"max_wal_size=256MB",
		"log_min_messages=warning",
		// Statistics, and with them plans, change only when a test says so.
		"autovacuum=off",
		// Tests may hold many locks in many schemas.
		"max_locks_per_transaction=256",
	}
	arguments := []string{"-D", s.data, "-p", strconv.Itoa(s.Port)}
	for _, setting := range append(settings, s.options.settings...) {
		arguments = append(arguments, "-c", setting)
	}
	return arguments
}
