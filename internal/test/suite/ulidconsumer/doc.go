// Package ulidconsumer tests consumers of ULID feeds. A consumer reads all shards of such a feed, each of which has an
// id and an order of its own.
package ulidconsumer
