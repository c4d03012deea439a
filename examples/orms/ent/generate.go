// Package ent is generated from schema.
package ent

//go:generate go run -mod=mod entgo.io/ent/cmd/ent generate ./schema
