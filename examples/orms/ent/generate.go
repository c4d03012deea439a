// Package ent is the code that ent generates from the schema. It is not in the repository: first run `go generate
// ./...` in examples/orms.
package ent

//go:generate go tool ent generate ./schema
