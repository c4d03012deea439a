// Package ulidconsumer tests consumers of ULID feeds, whose shards are listed and not counted.
package ulidconsumer
