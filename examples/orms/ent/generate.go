// Package ent is the code that ent generates from the schema. It is not in the repository:
// run `go generate ./...` in examples/orms before anything else there.
package ent

//go:generate go tool ent generate ./schema
