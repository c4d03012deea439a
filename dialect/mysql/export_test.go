package mysql

// SetSchemaLockSeconds shortens the wait for a schema lock.
func SetSchemaLockSeconds(n int) (restore func()) {
	old := schemaLockSeconds
	schemaLockSeconds = n
	return func() { schemaLockSeconds = old }
}
